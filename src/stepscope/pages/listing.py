"""Searching, filtering, sorting and paging the answer to any question, the same in Python and on every surface."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

import polars as pl

from stepscope.errors import StepscopeError, UnknownColumn
from stepscope.present import plural

LONGEST_FILTER = 2_000
"""Characters of a filter: the parser is recursive, and nobody types more."""

UNITS = {"_ns": {"_us": 1e3, "_ms": 1e6, "_s": 1e9}, "_bytes": {"_kB": 1e3, "_MB": 1e6, "_GB": 1e9}}
"""Units in column names, the units that may be used instead, and their factors."""

SUFFIXES = ("_ns", "_bytes", "_ratio", "_per_s")

_SUBQUERY = re.compile(r"\(\s*(select|from|with|values|table)\b|^\s*(select|with|from)\b|--|/\*", re.IGNORECASE)
"""What could name other tables or files: a condition may use only the columns of the table."""

_INSIDE = ("SubPlan", "_POLARS_TMP_SQL")
"""How Polars writes a query inside an expression."""


@dataclass(frozen=True)
class Listing:
    """What to show of a table.

    Args:
        search: Only rows one of whose texts contains this (case-insensitive).
        where: Only rows that meet this SQL condition, e.g. `total_ms > 5 AND type = 'Conv2D'`.
        sort: Columns to sort by, separated by commas; `-` before a name sorts the largest first. Nulls come last.
        top: Rows per page; None for all.
        page: Page number, from 1.

    A column may be given by its name (`total_ns`), without the unit (`total`), or in another unit (`total_ms`).
    """

    search: str | None = None
    where: str | None = None
    sort: str | None = None
    top: int | None = None
    page: int = 1

    @property
    def is_choosing(self) -> bool:
        """Whether it applies to the columns or pages of one table only."""
        return bool(self.search or self.where or self.sort) or self.page != 1


@dataclass(frozen=True)
class Part:
    """The rows of a table that were looked for: those of one page, and how many were `found` in all."""

    rows: pl.DataFrame
    found: int
    page: int = 1


def listed(frame: pl.DataFrame, listing: Listing) -> Part:
    """Search, filter, sort and page a table, in this order.

    Raises:
        StepscopeError: If there is no such column or page, or the filter is not a condition over the columns.
    """
    if listing.search:
        frame = _searched(frame, listing.search)
    if listing.where is not None:
        frame = _filtered(frame, listing.where)
    if listing.sort:
        frame = _sorted(frame, listing.sort)
    return paged(frame, listing.top, listing.page)


def column(frame: pl.DataFrame, name: str) -> pl.Expr:
    """A column by its name, with or without its unit, or in another unit.

    Raises:
        UnknownColumn: If there is none; the text lists the columns of the table.
    """
    names = set(frame.columns)
    if name in names:
        return pl.col(name)
    bare = [name + suffix for suffix in SUFFIXES if name + suffix in names]
    if bare:
        return pl.col(bare[0])
    for unit, others in UNITS.items():
        for suffix, factor in others.items():
            stem = name[: -len(suffix)]
            if name.lower().endswith(suffix.lower()) and stem + unit in names:
                return pl.col(stem + unit) / factor
    likely = difflib.get_close_matches(name, frame.columns, 1)
    meant = f"Did you mean {likely[0]}? " if likely else ""
    raise UnknownColumn(f"there is no column {name!r}. {meant}Columns: {', '.join(frame.columns)}")


def _searched(frame: pl.DataFrame, text: str) -> pl.DataFrame:
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    wanted = text.lower()
    return frame.filter(pl.any_horizontal(pl.col(texts).str.to_lowercase().str.contains(wanted, literal=True)))


def _filtered(frame: pl.DataFrame, where: str) -> pl.DataFrame:
    condition = _condition(where)
    called = [name for name in dict.fromkeys(condition.meta.root_names()) if name not in frame.columns]
    wider = frame.with_columns(column(frame, name).alias(name) for name in called)
    try:
        return wider.filter(condition).drop(called)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:  # the latter: a bug in Polars
        raise _no_condition(where, error) from error


def _condition(where: str) -> pl.Expr:
    """The filter as an expression over columns only.

    Raises:
        StepscopeError: If it is anything else.
    """
    if len(where) > LONGEST_FILTER:
        raise StepscopeError(f"the filter is {len(where)} characters long. Give at most {LONGEST_FILTER}")
    if _SUBQUERY.search(where):
        raise StepscopeError(f"filter {where!r}: only a condition over the columns is allowed, no query or comment")
    try:
        condition = pl.sql_expr(where)
    except pl.exceptions.PolarsError as error:
        raise _no_condition(where, error) from error
    if any(word in condition.meta.serialize(format="json") for word in _INSIDE):
        raise StepscopeError(f"filter {where!r}: only a condition over the columns is allowed, no query in it")
    return condition


def _no_condition(where: str, error: BaseException) -> StepscopeError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".:")
    return StepscopeError(
        f"filter {where!r}: {reason}. Write a condition in SQL, e.g. \"total_ms > 5 AND name LIKE '%MatMul%'\""
    )


def _sorted(frame: pl.DataFrame, sort: str) -> pl.DataFrame:
    names = [name.strip() for name in sort.split(",")]
    by = [column(frame, name.removeprefix("-")) for name in names]
    return frame.sort(by, descending=[name.startswith("-") for name in names], nulls_last=True, maintain_order=True)


def paged(frame: pl.DataFrame, top: int | None, page: int, longest: int = 0) -> Part:
    """A page of a table; an empty one if only the `longest` (rows) of the tables beside it has that page.

    Raises:
        StepscopeError: If there is no such page.
    """
    size = frame.height if top is None else top
    height = max(frame.height, longest)
    pages = max(1, -(-height // size)) if size > 0 else 1
    if not 1 <= page <= pages:
        there = "is 1 page" if pages == 1 else f"are {pages} pages"
        raise StepscopeError(f"there is no page {page}: there {there} for {plural(height, 'row')}")
    return Part(frame.slice((page - 1) * size, size), frame.height, page)
