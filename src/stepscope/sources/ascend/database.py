"""Read tables of a SQLite file into frames, without ever writing next to it."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.sources.ascend.database_access import Access, bounded, open_access
from stepscope.sources.base import Sink
from stepscope.sources.csv_files.layout import Field, bare_key, column_key
from stepscope.sources.plausible import STRAY_REMEDY, Times, lost_rows, sort_out

DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged file makes of a query; the message of an error may itself be damaged."""
_ROWS_AT_ONCE = 50_000
_NUMBERS_AT_ONCE = 100_000
_HELD_BYTES = 32 << 20
"""Roughly how much text is collected before it becomes columns."""
_LEAST_ROWID = -(2**63)
REMEDY = "Export the profile again, or copy the file again if it is truncated."
FILLS = {
    "TASK": "kernels",
    "COMPUTE_TASK_INFO": "kernels",
    "COMMUNICATION_OP": "collectives",
    "STRING_IDS": "operators",
    "PYTORCH_API": "operators",
    "CANN_API": "slices",
    "STEP_TIME": "steps",
    "COMMANALYZERTIME": "collectives",
    "COMMANALYZERMATRIX": "links",
    "STEPTRACETIME": "step_totals",
}
"""Tables of a recording, in upper case, to the table here that is missing without them: the place of an issue."""
CONNECTION = pl.col("correlation").replace({0xFFFFFFFF: None})
"""`correlation` without the number that stands for no connection."""
_TIMED = ("TASK", "PYTORCH_API", "CANN_API", "COMMUNICATION_OP", "STEP_TIME", "MSTX_EVENTS")
_SAMPLES = 500
_VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL\b", re.IGNORECASE)


Columns = Mapping[str, Sequence[str] | str]
"""Our column to the recorded names it may have, also as the text export spells them."""
Types = Mapping[str, type[pl.DataType]]
TEXT_ID = pl.Categorical
"""Type of a column with numbers of texts, which are read as the texts; unknown ones and `N/A` are null."""


def columns_of(fields: Iterable[Field]) -> dict[str, Sequence[str] | str]:
    """The columns of a file of the text export, to be read from a table."""
    return {field.column: field.headers for field in fields}


class Database:
    """One open database. A missing table gives an empty frame, a missing column nulls."""

    def __init__(self, path: Path, access: Access, sink: Sink) -> None:
        self.path = path
        self._access = access
        self.sink = sink
        self._refused: dict[str, str] = {}
        """Upper-case names of views and virtual tables, and what they are; reported when the table is requested."""
        self.tables: dict[str, dict[str, str]] = {}
        """Table name in upper case to its columns: `_key` of the name to the name as it stands."""
        self._strings: pl.DataFrame | None = None

    def load_schema(self) -> None:
        """Learn the tables and their columns.

        Raises:
            sqlite3.DatabaseError: If the file is not a database.
        """
        made = self._access.all("SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view')")
        for kind, name, statement in made:
            if not isinstance(name, str):
                continue
            if kind == "view" or not isinstance(statement, str) or _VIRTUAL.match(statement):
                self._refused[name.upper()] = "a view" if kind == "view" else "a virtual table"
                continue
            columns = self._access.all(f"PRAGMA table_info({_quoted(name)})")
            self.tables[name.upper()] = {_key(str(row[1])): str(row[1]) for row in columns}

    def has(self, table: str, *columns: str) -> bool:
        """Whether the database has the table, and all these columns of it."""
        if (kind := self._refused.pop(table.upper(), None)) is not None:
            self.report(table, f"is {kind}; only ordinary tables are read", "Export it again with the profiler's tool.")
        known = self.tables.get(table.upper())
        return known is not None and all(_key(column) in known for column in columns)

    def read_batches(
        self, table: str, wanted: Columns, schema: Types | None = None, *, where: str = "", needed: Sequence[str] = ()
    ) -> Iterator[pl.DataFrame]:
        """Columns of a table, at least one batch; missing ones are null, a missing or damaged table has no rows.

        Args:
            table: Name of the table.
            wanted: The columns.
            schema: Types of columns that are not int64.
            where: SQL condition on recorded names.
            needed: Columns that the table must have to be of use.
        """
        texts = [name for name, dtype in (schema or {}).items() if dtype is TEXT_ID]
        types: dict[str, type[pl.DataType]] = {**dict.fromkeys(wanted, pl.Int64), **(schema or {})}
        types.update(dict.fromkeys(texts, pl.Int64))
        known = self.tables[table.upper()] if self.has(table) else {}
        chosen: dict[str, str] = {}
        for name, spellings in wanted.items():
            options = (spellings,) if isinstance(spellings, str) else spellings
            found = next((known[key] for key in map(_key, options) if key in known), None)
            if found:
                chosen[name] = found
        missing = [name for name in needed if name not in chosen]
        if missing and known:
            self.report(table, f"has no column {', '.join(str(wanted[name]) for name in missing)}")
        if missing or not chosen:
            yield pl.DataFrame(schema={**types, **dict.fromkeys(texts, pl.String)})
            return
        columns = ", ".join(bounded(_quoted(column)) for column in chosen.values())
        query = f"SELECT {columns} FROM {_quoted(table)} {where and 'WHERE ' + where}"
        for frame in self._batches(table, query, {name: types[name] for name in chosen}):
            rows = frame.select(
                pl.col(name) if name in chosen else pl.lit(None, dtype).alias(name) for name, dtype in types.items()
            )
            yield self._with_texts(rows, texts) if texts else rows

    def read(
        self, table: str, wanted: Columns, schema: Types | None = None, *, where: str = "", needed: Sequence[str] = ()
    ) -> pl.DataFrame:
        """All rows of `read_batches` in one frame."""
        return pl.concat(self.read_batches(table, wanted, schema, where=where, needed=needed))

    def range_batches(
        self, table: str, wanted: Columns, schema: Types | None = None, *, where: str = "", needed: Sequence[str] = ()
    ) -> Iterator[pl.DataFrame]:
        """Like `read_batches`, with `start_ns`, `end_ns` and `duration_ns` as well.

        Rows with impossible times are left out and reported at the end.
        """
        wrong: Counter[str] = Counter()
        rows = 0
        wanted = {"start_ns": "startNs", "end_ns": "endNs", **wanted}
        for frame in self.read_batches(table, wanted, schema, where=where, needed=("start_ns", "end_ns", *needed)):
            checked = sort_out(frame, self.middle_ns, start=pl.col("start_ns"), end=pl.col("end_ns"))
            wrong.update(checked.wrong)
            rows += frame.height
            yield checked.rows.with_columns(duration_ns=pl.col("end_ns") - pl.col("start_ns"))
        self._report_damage(table, wrong, rows)

    def timed(self, table: str, rows: pl.DataFrame, time: str) -> pl.DataFrame:
        """Rows of a table with a plausible `time`; the others are reported."""
        checked = sort_out(rows, self.middle_ns, start=pl.col(time))
        self._report_damage(table, checked.wrong, rows.height)
        return checked.rows

    def _report_damage(self, table: str, wrong: Mapping[str, int], rows: int) -> None:
        if lost := sum(wrong.values()):
            self.report(table, f"is damaged, {lost_rows(wrong, rows)}", STRAY_REMEDY, lost=lost)

    @cached_property
    def middle_ns(self) -> int | None:
        """About the middle of the recording, from some starts of each table of ranges."""
        times = Times()
        for table in _TIMED:
            if not self.has(table, "startNs"):
                continue
            try:
                ((low, high),) = self._access.all(f"SELECT min(rowid), max(rowid) FROM {_quoted(table)}")
                if not isinstance(low, int) or not isinstance(high, int):
                    continue
                rows = range(low, high + 1, max(1, (high - low) // _SAMPLES))
                marks = ",".join("?" * len(rows))
                query = f"SELECT {bounded('startNs')} FROM {_quoted(table)} WHERE rowid IN ({marks})"
                starts = [row[0] for row in self._access.all(query, list(rows))]
            except DATABASE_ERRORS:
                continue  # reported when the table itself is read
            times.add(pl.Series(starts, dtype=pl.Int64, strict=False))
        return times.middle_ns

    def is_filled(self, table: str) -> bool:
        """Whether the database has the table and any row in it."""
        if not self.has(table):
            return False
        try:
            return bool(self._access.all(f"SELECT 1 FROM {_quoted(table)} LIMIT 1"))
        except DATABASE_ERRORS:
            return True  # reported when it is read

    def named_ranges(self, table: str, wanted: Columns, schema: Types) -> Iterator[pl.DataFrame]:
        """Rows of `range_batches` with a name; the others are reported at the end, unless all names are missing."""
        lost = 0
        for rows in self.range_batches(table, wanted, schema, needed=("name",)):
            kept = rows.drop_nulls("name")
            lost += rows.height - kept.height
            yield kept
        if lost and self.is_filled("STRING_IDS"):
            self.report(table, f"has {lost} rows with names that are not in STRING_IDS; they are left out", lost=lost)

    def _batches(self, table: str, query: str, schema: Types) -> Iterator[pl.DataFrame]:
        """The rows of a query as columns, at least one batch; what was read before damage is kept.

        Values that do not fit a column's type are null.
        """
        yield pl.DataFrame(schema=schema)
        pieces, held, before = self._access.rows(query), [], self._access.given_bytes
        while True:
            try:
                piece = next(pieces, [])
            except DATABASE_ERRORS as error:
                self.report(table, f"cannot be read completely: {error}")
                piece = []
            held += piece
            if held and (not piece or len(held) >= _ROWS_AT_ONCE or self._access.given_bytes - before >= _HELD_BYTES):
                yield _columns(held, schema)
                held, before = [], self._access.given_bytes
            if not piece:
                return

    def number_batches(self, table: str, columns: Mapping[str, str], schema: Types) -> Iterator[pl.DataFrame]:
        """Columns of a long table of plain numbers; nulls are kept, a damaged table has no rows.

        SQLite joins each column into one text, which is taken apart here: half the work of handing over a
        Python object for every number. Numbers keep 15 digits.
        """
        name = _quoted(table)
        inner = ", ".join(_quoted(column) for column in columns.values())
        outer = ", ".join(f"group_concat(ifnull({_quoted(column)}, ''))" for column in columns.values())
        query = (
            f"SELECT max(rowid), {outer} FROM "
            f"(SELECT rowid, {inner} FROM {name} WHERE rowid >= ? ORDER BY rowid LIMIT {_NUMBERS_AT_ONCE})"
        )
        start: int | None = _LEAST_ROWID
        try:
            while start is not None:
                ((last, *texts),) = self._access.all(query, (start,))
                if last is not None:
                    yield pl.DataFrame(
                        [
                            pl.Series(column, [text]).str.split(",").explode().cast(schema[column], strict=False)
                            for column, text in zip(columns, texts, strict=True)
                        ]
                    )
                # a column may be called rowid, and hold anything
                start = last + 1 if isinstance(last, int) and start <= last < -_LEAST_ROWID - 1 else None
        except (*DATABASE_ERRORS, pl.exceptions.PolarsError) as error:
            self.report(table, f"cannot be read completely: {error}")

    def _with_texts(self, frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
        """Replace string ids by the strings."""
        if self._strings is None:
            strings = self.read("STRING_IDS", {"id": "id", "text": "value"}, {"text": pl.String})
            self._strings = strings.drop_nulls().filter(~pl.col("text").is_in(["N/A", ""])).unique("id")
        ids, texts = self._strings
        return frame.with_columns(pl.col(columns).replace_strict(ids, texts, default=None, return_dtype=pl.String))

    def texts_in(self, table: str, column: str) -> dict[int, str]:
        """The numbers of texts in a column, each once, and the texts."""
        query = f"SELECT DISTINCT {_quoted(column)} FROM {_quoted(table)}"
        numbers = pl.concat(self._batches(table, query, {"id": pl.Int64}))
        return dict(self._with_texts(numbers.with_columns(text="id"), ["text"]).drop_nulls().iter_rows())

    def enumeration(self, table: str) -> dict[int, str]:
        """An `ENUM_` table: number to name."""
        rows = self.read(table, {"id": "id", "name": "name"}, {"name": pl.String}).drop_nulls()
        return dict(rows.iter_rows())

    def note(self, table: str, problem: str, remedy: str) -> None:
        """Report something harmless about a table."""
        self.sink.issue("note", self.path, f"table {table} {problem}", remedy, place=f"table {table}")

    def report(self, table: str, problem: str, remedy: str = REMEDY, *, lost: int | None = None) -> None:
        """Report damage in a table."""
        place = FILLS.get(table.upper(), f"table {table}")
        self.sink.issue("error", self.path, f"table {table} {problem}", remedy, place=place, lost=lost)


@contextmanager
def open_database(path: Path, sink: Sink) -> Iterator[Database]:
    """Open a SQLite file as `open_access` does, and learn its tables.

    Raises:
        sqlite3.Error: If it cannot be opened or is not a database.
    """
    with open_access(path) as access:
        database = Database(path, access, sink)
        database.load_schema()
        yield database


def _columns(rows: list[tuple[Any, ...]], schema: Types) -> pl.DataFrame:
    columns = dict(zip(schema, zip(*rows, strict=True), strict=True))
    return pl.DataFrame(columns, schema=schema, strict=False)


def _key(name: str) -> str:
    """The form in which names of columns are compared: `transitSize` and `Transit Size(MB)` are `transitsize`."""
    return bare_key(column_key(name))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
