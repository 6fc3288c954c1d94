"""Searching, filtering, sorting and paging the answer to any question, the same in Python and on every surface."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.errors import NoRows, StepscopeError, UnknownColumn, there_are
from stepscope.present import plural, title

LONGEST_FILTER = 2_000
"""Characters of a filter: the parser is recursive, and nobody types more."""

_SIZES = {"kB": 1e3, "MB": 1e6, "GB": 1e9}

UNITS = {
    "_ns": {"_us": 1e3, "_ms": 1e6, "_s": 1e9},
    "_bytes": {f"_{unit}": factor for unit, factor in _SIZES.items()},
    "_bytes_per_s": {f"_{unit}_per_s": factor for unit, factor in _SIZES.items()},
}
"""Units in column names, the units that may be used instead, and their factors."""

SUFFIXES = ("_ns", "_bytes", "_ratio", "_per_s", "_bytes_per_s")

COMPARED = 10_000
"""Texts of a column that are compared with one that was not found."""

_SIGNS = re.compile(r"[\W_]+")

_LITERAL = re.compile(r"'([^']*)'")
_WORD = re.compile(r"'[^']*'|\"[^\"]*\"|\w+")

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

    A column may be given by its name (`total_ns`), without the unit (`total`), in another unit (`total_ms`), or as its
    heading says (`step time`, `step_time`).
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


def listed(frame: pl.DataFrame, listing: Listing, titles: Mapping[str, str] | None = None) -> Part:
    """Search, filter, sort and page a table, in this order.

    Args:
        frame: The table.
        listing: What to show of it.
        titles: Column to its heading, where that is not its name.

    Raises:
        NoRows: If none of its rows is looked for.
        StepscopeError: If there is no such column or page, or the filter is not a condition over the columns.
    """
    if listing.search:
        frame = _searched(frame, listing.search)
    if listing.where is not None:
        frame = _filtered(frame, listing.where, titles or {})
    if listing.sort:
        frame = _sorted(frame, listing.sort, titles or {})
    return paged(frame, listing.top, listing.page)


def column(frame: pl.DataFrame, name: str, titles: Mapping[str, str] | None = None) -> pl.Expr:
    """A column by its name, with or without its unit, in another unit, or by its heading.

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
    headings = [
        (_plain(text), each) for each in frame.columns for text in (each, (titles or {}).get(each), title(each))
    ]
    if known := [each for text, each in headings if text == _plain(name)]:
        return pl.col(known[0])
    likely = difflib.get_close_matches(name, frame.columns, 1)
    meant = f"Did you mean {likely[0]}? " if likely else ""
    raise UnknownColumn(f"there is no column {name!r}. {meant}Columns: {', '.join(frame.columns)}")


def _plain(text: str | None) -> str:
    """A name or heading without what people write in different ways: case, spaces, underscores, signs."""
    return _SIGNS.sub("", (text or "").lower())


def _searched(frame: pl.DataFrame, text: str) -> pl.DataFrame:
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    wanted = text.lower()
    found = frame.filter(pl.any_horizontal(pl.col(texts).str.to_lowercase().str.contains(wanted, literal=True)))
    if found.is_empty() and not frame.is_empty():
        known = _texts(frame, texts)
        there = there_are(text, known) if known else "This table has no texts; choose rows with «--filter»"
        raise NoRows(f"«--search» {text}: no row contains it. {there}")
    return found


def _texts(frame: pl.DataFrame, names: list[str]) -> list[str]:
    """Texts of some columns, each once, in order; of very many the first."""
    every = (frame[name].drop_nulls().unique(maintain_order=True).head(COMPARED) for name in names)
    return list(dict.fromkeys(text for column in every for text in column if text))


def _filtered(frame: pl.DataFrame, where: str, titles: Mapping[str, str]) -> pl.DataFrame:
    condition = _condition(where, frame.columns)
    called = [name for name in dict.fromkeys(condition.meta.root_names()) if name not in frame.columns]
    wider = frame.with_columns(column(frame, name, titles).alias(name) for name in called)
    try:
        found = wider.filter(condition).drop(called)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:  # the latter: a bug in Polars
        raise _no_condition(where, error) from error
    if found.is_empty() and not frame.is_empty():
        there = ". ".join(_there(wider[name], where) for name in dict.fromkeys(condition.meta.root_names()))
        raise NoRows(f"«--filter» {where}: no row meets it" + (f". {there}" if there else ""))
    return found


def _there(values: pl.Series, where: str) -> str:
    """What there is in a column of a filter."""
    known = values.drop_nulls()
    if known.is_empty():
        return f"{values.name} is unknown in all rows"
    if known.dtype.is_numeric():
        least, most = (float(value) for value in (known.min(), known.max()))  # type: ignore[arg-type]
        return f"{values.name} is {least:g}" if least == most else f"{values.name} is {least:g} to {most:g}"
    if known.dtype != pl.String:
        return f"{values.name} is {', '.join(str(value) for value in known.unique().sort())}"
    literal = next(iter(_LITERAL.findall(where)), "")
    there = there_are(literal.strip("%"), _texts(known.to_frame(), [values.name]))
    return f"{values.name}: {there.replace('There', 'there', 1)}"


def _condition(where: str, columns: Sequence[str]) -> pl.Expr:
    """The filter as an expression over columns only, of which some have names that are words of SQL, e.g. `group`.

    Raises:
        StepscopeError: If it is anything else.
    """
    if len(where) > LONGEST_FILTER:
        raise StepscopeError(f"the filter is {len(where)} characters long. Give at most {LONGEST_FILTER}")
    if _SUBQUERY.search(where):
        raise StepscopeError(f"filter {where!r}: only a condition over the columns is allowed, no query or comment")
    try:
        condition = _parsed(where, columns)
    except pl.exceptions.PolarsError as error:
        raise _no_condition(where, error) from error
    if any(word in condition.meta.serialize(format="json") for word in _INSIDE):
        raise StepscopeError(f"filter {where!r}: only a condition over the columns is allowed, no query in it")
    return condition


def _parsed(where: str, columns: Sequence[str]) -> pl.Expr:
    try:
        return pl.sql_expr(where)
    except pl.exceptions.PolarsError:
        quoted = _WORD.sub(lambda word: f'"{word[0]}"' if word[0] in columns else word[0], where)
        if quoted == where:
            raise
        return pl.sql_expr(quoted)


def _no_condition(where: str, error: BaseException) -> StepscopeError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".:")
    return StepscopeError(
        f"filter {where!r}: {reason}. Write a condition in SQL, e.g. \"total_ms > 5 AND name LIKE '%MatMul%'\""
    )


def _sorted(frame: pl.DataFrame, sort: str, titles: Mapping[str, str]) -> pl.DataFrame:
    names = [name.strip() for name in sort.split(",")]
    by = [column(frame, name.removeprefix("-"), titles) for name in names]
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
