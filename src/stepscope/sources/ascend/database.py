"""Read tables of a SQLite file into frames, without ever writing next to it."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.sources.ascend.database_access import Access, bounded, open_access
from stepscope.sources.ascend.database_texts import Texts
from stepscope.sources.ascend.placeholders import ALIAS, MADE_UP_CONNECTION
from stepscope.sources.base import Sink
from stepscope.sources.csv_files.layout import Field, bare_key, column_key
from stepscope.sources.native.library import Refused
from stepscope.sources.native.sqlite import StoredTable
from stepscope.sources.plausible import STRAY_REMEDY, WEEK_NS, Times, lost_rows, sort_out
from stepscope.tables.base import with_schema

DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged file makes of a query; the message of an error may itself be damaged."""
_ROWS_AT_ONCE = 50_000
_CELLS_AT_ONCE = 1 << 20
"""Of columns without objects of Python: 8 MiB of numbers."""
_HELD_BYTES = 32 << 20
"""Roughly how much text is collected before it becomes columns."""
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
NO_CONNECTION = 0xFFFFFFFF
CONNECTION = (
    pl.when(pl.col("correlation") >= ALIAS)
    .then(pl.col("correlation") - ALIAS)
    .when(pl.col("correlation") != NO_CONNECTION, pl.col("correlation") < MADE_UP_CONNECTION)
    .then("correlation")
)
"""`correlation` without the numbers that stand for no connection."""
_TIMED = ("TASK", "PYTORCH_API", "CANN_API", "COMMUNICATION_OP", "STEP_TIME", "MSTX_EVENTS")
_SAMPLES = 128
_VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL\b", re.IGNORECASE)
_SCHEMA = """
    SELECT m.type, m.name, m.rootpage, CASE WHEN ifnull(c.cid, 0) = 0 THEN m.sql END, c.name, c.type, c.pk, c.hidden
    FROM sqlite_master m LEFT JOIN pragma_table_xinfo(CASE WHEN m.type = 'table' AND m.rootpage > 0 THEN m.name END) c
    WHERE m.type IN ('table', 'view')
"""
"""All tables with their columns in one question: asking for each table takes longer than reading a small one."""

Columns = Mapping[str, Sequence[str] | str]
"""Our column to the recorded names it may have, also as the text export spells them."""
Types = Mapping[str, type[pl.DataType]]
TEXT_ID = pl.Categorical
"""Type of a column with numbers of texts, which are read as the texts; unknown ones and `N/A` are null."""


def joined(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """All rows of some frames."""
    held = list(frames)
    return pl.concat(held) if len(held) > 1 else held[0]


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
        self._stored: dict[str, StoredTable] = {}
        """Upper-case names of tables that can be read without SQLite."""
        self._filled: set[str] = set()
        """Upper-case names of tables of which rows were read."""
        self._texts: Texts | None = None
        self._enumerations: dict[str, dict[int, str]] = {}

    def load_schema(self) -> None:
        """Learn the tables and their columns.

        Raises:
            sqlite3.DatabaseError: If the file is not a database.
        """
        for (kind, name, root), found in groupby(self._access.all(_SCHEMA), itemgetter(0, 1, 2)):
            rows = [row[3:] for row in found]
            statement = rows[0][0]
            if not isinstance(name, str):
                continue
            if kind == "view" or not isinstance(statement, str) or _VIRTUAL.match(statement):
                self._refused[name.upper()] = "a view" if kind == "view" else "a virtual table"
                continue
            names = [str(column) for _, column, *_ in rows]
            is_hidden = [bool(row[-1]) for row in rows]
            self.tables[name.upper()] = {_key(c): c for c, hidden in zip(names, is_hidden, strict=True) if not hidden}
            if isinstance(root, int) and not any(is_hidden):
                numbers = [place for place, row in enumerate(rows) if row[-2]]  # of columns in the primary key
                is_number = len(numbers) == 1 and str(rows[numbers[0]][2]).upper() == "INTEGER"
                if not (is_number and "DESC" in statement.upper()):  # where SQLite has exceptions
                    places = {column: place for place, column in enumerate(names)}
                    self._stored[name.upper()] = StoredTable(root, numbers[0] if is_number else -1, places)

    def has(self, table: str, *columns: str) -> bool:
        """Whether the database has the table, and all these columns of it."""
        if (kind := self._refused.pop(table.upper(), None)) is not None:
            self.report(table, f"is {kind}; only ordinary tables are read", "Export it again with the profiler's tool.")
        known = self.tables.get(table.upper())
        return known is not None and all(_key(column) in known for column in columns)

    def read_batches(
        self, table: str, wanted: Columns, schema: Types | None = None, *, filled: str = "", needed: Sequence[str] = ()
    ) -> Iterator[pl.DataFrame]:
        """Columns of a table, at least one batch; missing ones are null, a missing or damaged table has no rows.

        Args:
            table: Name of the table.
            wanted: The columns.
            schema: Types of columns that are not int64.
            filled: One of the columns: rows where it is null are left out.
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
        rows = 0
        if chosen and not missing:
            for frame in self._batches(table, chosen, {name: types[name] for name in chosen}, filled):
                rows += frame.height
                yield self._completed(frame, types, texts)
        if rows:
            self._filled.add(table.upper())
        else:
            yield pl.DataFrame(schema={**types, **dict.fromkeys(texts, pl.String)})

    def _completed(self, frame: pl.DataFrame, types: Types, texts: Sequence[str]) -> pl.DataFrame:
        """All columns of `types`, those without a column in the table null; texts for their numbers."""
        if len(types) > frame.width:
            found = frame.schema
            frame = with_schema(frame, {name: found.get(name, dtype) for name, dtype in types.items()})
        return self._with_texts(frame, texts) if texts else frame

    def read(
        self, table: str, wanted: Columns, schema: Types | None = None, *, filled: str = "", needed: Sequence[str] = ()
    ) -> pl.DataFrame:
        """All rows of `read_batches` in one frame."""
        return joined(self.read_batches(table, wanted, schema, filled=filled, needed=needed))

    def range_batches(
        self, table: str, wanted: Columns, schema: Types | None = None, *, filled: str = "", needed: Sequence[str] = ()
    ) -> Iterator[pl.DataFrame]:
        """Like `read_batches`, with `start_ns`, `end_ns` and `duration_ns` as well.

        Rows with impossible times are left out and reported at the end.
        """
        wrong: Counter[str] = Counter()
        rows = 0
        wanted = {"start_ns": "startNs", "end_ns": "endNs", **wanted}
        for frame in self.read_batches(table, wanted, schema, filled=filled, needed=("start_ns", "end_ns", *needed)):
            duration = frame["end_ns"] - frame["start_ns"]
            if self._is_plausible(frame["start_ns"], duration):
                kept = frame
            else:
                checked = sort_out(frame, self.middle_ns, start=pl.col("start_ns"), end=pl.col("end_ns"))
                wrong.update(checked.wrong)
                kept = checked.rows
                duration = kept["end_ns"] - kept["start_ns"]
            rows += frame.height
            yield kept.hstack([duration.alias("duration_ns")])
        self._report_damage(table, wrong, rows)

    def ranges(
        self, table: str, wanted: Columns, schema: Types | None = None, *, filled: str = "", needed: Sequence[str] = ()
    ) -> pl.DataFrame:
        """All rows of `range_batches` in one frame."""
        return joined(self.range_batches(table, wanted, schema, filled=filled, needed=needed))

    def _is_plausible(self, start: pl.Series, duration: pl.Series) -> bool:
        """Whether all times can be true, as nearly always; where this says no, `sort_out` tells which."""
        if not len(start):
            return True
        if duration.null_count() or self.middle_ns is None:
            return False
        bounds = start.min(), start.max(), duration.min(), duration.max()
        first, last, shortest, longest = (int(bound) for bound in bounds if isinstance(bound, int))
        near = self.middle_ns - WEEK_NS <= first and last <= self.middle_ns + WEEK_NS
        return near and shortest >= 0 and longest <= WEEK_NS

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
                # SQLite looks up one of them, but goes through the table for both
                ends = (f"(SELECT {end}(rowid) FROM {_quoted(table)})" for end in ("min", "max"))
                ((low, high),) = self._access.all(f"SELECT {', '.join(ends)}")
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
        if table.upper() in self._filled:
            return True
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

    def _batches(self, table: str, columns: Mapping[str, str], types: Types, filled: str) -> Iterator[pl.DataFrame]:
        """Rows of a table as columns, in batches; what was read before damage is kept.

        Values that do not fit a column's type are null. The compiled decoder reads as far as the table is plain, and
        SQLite the rest; both in the order of row numbers, which SQLite would leave for that of an index.
        """
        given = 0
        try:
            for frame in self._plain_batches(table, columns, types, filled):
                given += frame.height
                yield frame
        except Refused:
            yield from self._checked_batches(table, columns, types, filled, given)

    def _plain_batches(
        self, table: str, columns: Mapping[str, str], types: Types, filled: str
    ) -> Iterator[pl.DataFrame]:
        """What the compiled decoder reads of a table.

        Raises:
            Refused: If the rest is for SQLite.
        """
        if (stored := self._stored.get(table.upper())) is None:
            raise Refused
        kinds = {recorded: types[name] for name, recorded in columns.items()}
        if len(kinds) < len(columns):
            raise Refused
        for frame in self._access.stored(stored, kinds, max(1, _CELLS_AT_ONCE // len(kinds)), _HELD_BYTES):
            frame.columns = list(columns)
            yield frame.drop_nulls(filled) if filled else frame

    def _checked_batches(
        self, table: str, columns: Mapping[str, str], types: Types, filled: str, given: int
    ) -> Iterator[pl.DataFrame]:
        """What SQLite gives of a table after so many rows."""
        listed = ", ".join(bounded(_quoted(column)) for column in columns.values())
        only = f"WHERE {_quoted(columns[filled])} IS NOT NULL" if filled else ""
        pieces, held = self._access.rows(f"SELECT {listed} FROM {_quoted(table)} NOT INDEXED {only}"), []
        before = self._access.given_bytes
        while True:
            try:
                piece = next(pieces, [])
            except DATABASE_ERRORS as error:
                self.report(table, f"cannot be read completely: {error}")
                piece = []
            held += piece[given:]
            given = max(0, given - len(piece))
            if held and (not piece or len(held) >= _ROWS_AT_ONCE or self._access.given_bytes - before >= _HELD_BYTES):
                yield _columns(held, types)
                held, before = [], self._access.given_bytes
            if not piece:
                return

    def first_number(self, table: str, column: str) -> int | None:
        """Any number in a column; None if there is none."""
        if not self.has(table, column):
            return None
        name = _quoted(column)
        try:
            rows = self._access.all(f"SELECT {name} FROM {_quoted(table)} WHERE typeof({name}) = 'integer' LIMIT 1")
        except DATABASE_ERRORS:
            return None  # reported when the table itself is read
        return rows[0][0] if rows else None

    def _with_texts(self, frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
        """Replace string ids by the strings."""
        if self._texts is None:
            self._texts = Texts(self.read("STRING_IDS", {"id": "id", "text": "value"}, {"text": pl.String}))
        found = {name: self._texts.at_once(frame[name]) for name in columns}
        if rest := [name for name, texts in found.items() if texts is None]:
            frame = frame.with_columns(map(self._texts.of, rest))
        return pl.DataFrame([column if (texts := found.get(column.name)) is None else texts for column in frame])

    def texts(self, numbers: Iterable[int]) -> dict[int, str]:
        """The texts of some numbers, as far as they are known."""
        frame = pl.DataFrame({"id": list(numbers)}, schema={"id": pl.Int64}).with_columns(text="id")
        return dict(self._with_texts(frame, ["text"]).drop_nulls().iter_rows())

    def enumeration(self, table: str) -> dict[int, str]:
        """An `ENUM_` table: number to name."""
        if table not in self._enumerations:
            rows = self.read(table, {"id": "id", "name": "name"}, {"name": pl.String})
            self._enumerations[table] = {n: name for n, name in rows.iter_rows() if n is not None and name is not None}
        return self._enumerations[table]

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
