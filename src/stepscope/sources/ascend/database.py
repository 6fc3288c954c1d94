"""Reading tables of a SQLite file into frames, without ever writing beside it."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeAlias
from urllib.parse import quote_from_bytes

import polars as pl

from stepscope.sources.ascend.database_values import as_series
from stepscope.sources.plausible import STRAY_REMEDY, Times, lost_rows, sort_out

if TYPE_CHECKING:
    from stepscope.sources.base import Sink

DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged file makes of a query; the message of an error may itself be damaged."""
_ROWS_AT_ONCE = 50_000
_NUMBERS_AT_ONCE = 500_000
REMEDY = "Export the profile again, or copy the file again if it was cut."
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
_TIMED = ("TASK", "PYTORCH_API", "CANN_API", "COMMUNICATION_OP", "STEP_TIME", "MSTX_EVENTS")
_SAMPLES = 500


_Parameters = ParamSpec("_Parameters")
_Batches: TypeAlias = Callable[Concatenate["Database", _Parameters], Iterator[pl.DataFrame]]
_Frame: TypeAlias = Callable[Concatenate["Database", _Parameters], pl.DataFrame]


def _whole(batches: _Batches[_Parameters]) -> _Frame[_Parameters]:
    """The method that gives all `batches` in one frame."""

    def read(self: Database, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> pl.DataFrame:
        return pl.concat(batches(self, *args, **kwargs))

    return read


class Database:
    """One open database. A table or column that it lacks makes empty frames or null columns.

    Args:
        path: The file.
        sink: Where damage is told.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, sink: Sink) -> None:
        self.path = path
        self._connection = connection
        self.sink = sink
        self.tables: dict[str, dict[str, str]] = {}
        """Table name in upper case to its columns: name in lower case to the name as it stands."""
        self._strings: pl.DataFrame | None = None

    def load_schema(self) -> None:
        """Learn the tables and their columns.

        Raises:
            sqlite3.DatabaseError: If the file is no database.
        """
        names = self._connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        for (name,) in names.fetchall():
            if isinstance(name, str):
                columns = self._connection.execute(f"PRAGMA table_info({_quoted(name)})").fetchall()
                self.tables[name.upper()] = {str(row[1]).lower(): str(row[1]) for row in columns}

    def has(self, table: str, *columns: str) -> bool:
        """Whether the database has the table, and all these columns of it."""
        known = self.tables.get(table.upper())
        return known is not None and all(column.lower() in known for column in columns)

    def read_batches(
        self,
        table: str,
        wanted: Mapping[str, tuple[str, ...] | str],
        schema: dict[str, type[pl.DataType]] | None = None,
        *,
        where: str = "",
        needed: Sequence[str] = (),
    ) -> Iterator[pl.DataFrame]:
        """Columns of a table, at least one batch; missing ones are null, a missing or damaged table has no rows.

        Args:
            table: Name of the table.
            wanted: Our column to the recorded names it may have.
            schema: Types of columns that are not int64.
            where: Condition in SQL, on recorded names.
            needed: Columns without which the table is of no use.
        """
        types = {name: (schema or {}).get(name, pl.Int64) for name in wanted}
        known = self.tables.get(table.upper(), {})
        chosen: dict[str, str] = {}
        for name, spellings in wanted.items():
            options = (spellings,) if isinstance(spellings, str) else spellings
            found = next((known[option.lower()] for option in options if option.lower() in known), None)
            if found:
                chosen[name] = found
        missing = [name for name in needed if name not in chosen]
        if missing and known:
            self.tell(table, f"has no column {', '.join(str(wanted[name]) for name in missing)}")
        if missing or not chosen:
            yield pl.DataFrame(schema=types)
            return
        columns = ", ".join(_quoted(column) for column in chosen.values())
        query = f"SELECT {columns} FROM {_quoted(table)} {where and 'WHERE ' + where}"
        for frame in self._batches(table, query, {name: types[name] for name in chosen}):
            yield frame.select(
                pl.col(name) if name in chosen else pl.lit(None, dtype).alias(name) for name, dtype in types.items()
            )

    read = _whole(read_batches)
    """All rows of `read_batches` in one frame."""

    def range_batches(
        self,
        table: str,
        wanted: Mapping[str, tuple[str, ...] | str],
        schema: dict[str, type[pl.DataType]] | None = None,
        *,
        where: str = "",
        needed: Sequence[str] = (),
    ) -> Iterator[pl.DataFrame]:
        """Like `read_batches`, for rows with `start_ns` and `end_ns`; adds `duration_ns`.

        Rows whose times cannot be true are left out, and told at the end.
        """
        wrong: Counter[str] = Counter()
        rows = 0
        for frame in self.read_batches(table, wanted, schema, where=where, needed=("start_ns", "end_ns", *needed)):
            checked = sort_out(frame, self.middle_ns, start=pl.col("start_ns"), end=pl.col("end_ns"))
            wrong.update(checked.wrong)
            rows += frame.height
            yield checked.rows.with_columns(duration_ns=pl.col("end_ns") - pl.col("start_ns"))
        self._tell_damage(table, wrong, rows)

    read_ranges = _whole(range_batches)
    """All rows of `range_batches` in one frame."""

    def timed(self, table: str, rows: pl.DataFrame, time: str) -> pl.DataFrame:
        """Rows of a table whose `time` can be true; the others are told."""
        checked = sort_out(rows, self.middle_ns, start=pl.col(time))
        self._tell_damage(table, checked.wrong, rows.height)
        return checked.rows

    def _tell_damage(self, table: str, wrong: Mapping[str, int], rows: int) -> None:
        if lost := sum(wrong.values()):
            self.tell(table, f"is damaged, {lost_rows(wrong, rows)}", STRAY_REMEDY, lost=lost)

    @cached_property
    def middle_ns(self) -> int | None:
        """About the middle of the recording, from some starts of each table of ranges."""
        times = Times()
        for table in _TIMED:
            if not self.has(table, "startNs"):
                continue
            try:
                low, high = self._connection.execute(f"SELECT min(rowid), max(rowid) FROM {_quoted(table)}").fetchone()
                rows = range(low, high + 1, max(1, (high - low) // _SAMPLES)) if low is not None else ()
                marks = ",".join("?" * len(rows))
                query = f"SELECT startNs FROM {_quoted(table)} WHERE rowid IN ({marks})"
                starts = [row[0] for row in self._connection.execute(query, list(rows)).fetchall()]
            except DATABASE_ERRORS:
                continue  # told when the table itself is read
            times.add(as_series("start_ns", tuple(starts), pl.Int64))
        return times.middle_ns

    def is_filled(self, table: str) -> bool:
        """Whether the database has the table and any row in it."""
        if not self.has(table):
            return False
        try:
            return bool(self._connection.execute(f"SELECT 1 FROM {_quoted(table)} LIMIT 1").fetchall())
        except DATABASE_ERRORS:
            return True  # told when it is read

    def named(self, table: str, batches: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """Rows of a table that have a name; the others are told at the end, unless all names are missing."""
        lost = 0
        for rows in batches:
            kept = rows.drop_nulls("name")
            lost += rows.height - kept.height
            yield kept
        if lost and self.is_filled("STRING_IDS"):
            self.tell(table, f"has {lost} rows whose name is not in STRING_IDS; they are left out", lost=lost)

    def query(self, table: str, query: str, schema: dict[str, type[pl.DataType]]) -> pl.DataFrame:
        """The rows of a query as columns; what was read before damage is kept.

        Values that do not fit a column's type are null.
        """
        return pl.concat(self._batches(table, query, schema))

    def _batches(self, table: str, query: str, schema: dict[str, type[pl.DataType]]) -> Iterator[pl.DataFrame]:
        """The rows of a query, at least one batch."""
        yield pl.DataFrame(schema=schema)
        try:
            cursor = self._connection.execute(query)
            while rows := cursor.fetchmany(_ROWS_AT_ONCE):
                columns = zip(*rows, strict=True)
                yield pl.DataFrame(
                    [
                        as_series(name, values, dtype)
                        for (name, dtype), values in zip(schema.items(), columns, strict=True)
                    ]
                )
        except DATABASE_ERRORS as error:
            self.tell(table, f"cannot be read to its end: {error}")

    def number_batches(
        self, table: str, columns: dict[str, str], schema: Mapping[str, type[pl.DataType]]
    ) -> Iterator[pl.DataFrame]:
        """Columns of a long table of plain numbers; nulls are kept, a damaged table has no rows.

        SQLite joins each column into one text, which is taken apart here: half the work of handing over a
        Python object for every number. Numbers keep 15 digits.
        """
        name = _quoted(table)
        inner = ", ".join(_quoted(column) for column in columns.values())
        outer = ", ".join(f"group_concat(ifnull({_quoted(column)}, ''))" for column in columns.values())
        query = f"SELECT {outer} FROM (SELECT {inner} FROM {name} WHERE rowid > ? AND rowid <= ?)"
        try:
            low, high = self._connection.execute(f"SELECT min(rowid), max(rowid) FROM {name}").fetchone()
            for start in range((low or 1) - 1, high or 0, _NUMBERS_AT_ONCE):
                texts = self._connection.execute(query, (start, start + _NUMBERS_AT_ONCE)).fetchone()
                if texts[0] is not None:
                    yield pl.DataFrame(
                        [
                            pl.Series(column, [text]).str.split(",").explode().cast(schema[column], strict=False)
                            for column, text in zip(columns, texts, strict=True)
                        ]
                    )
        except (*DATABASE_ERRORS, pl.exceptions.PolarsError) as error:
            self.tell(table, f"cannot be read to its end: {error}")

    def with_texts(self, frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
        """Replace string ids by the strings; unknown ids and `N/A` are null."""
        if self._strings is None:
            strings = self.read("STRING_IDS", {"id": "id", "text": "value"}, {"text": pl.String})
            self._strings = strings.drop_nulls().filter(~pl.col("text").is_in(["N/A", ""])).unique("id")
        for column in columns:
            if frame.schema[column] == pl.String:
                continue
            texts = self._strings.rename({"id": column, "text": f"{column}_text"})
            frame = (
                frame.join(texts, on=column, how="left", maintain_order="left")
                .drop(column)
                .rename({f"{column}_text": column})
            )
        return frame

    def enumeration(self, table: str) -> dict[int, str]:
        """An `ENUM_` table: number to name."""
        rows = self.read(table, {"id": "id", "name": "name"}, {"name": pl.String}).drop_nulls()
        return dict(rows.iter_rows())

    def note(self, table: str, problem: str, remedy: str) -> None:
        """Tell what a table lacks without harm."""
        self.sink.issue("note", self.path, f"table {table} {problem}", remedy, place=f"table {table}")

    def tell(self, table: str, problem: str, remedy: str = REMEDY, *, lost: int | None = None) -> None:
        """Tell of damage in a table."""
        place = FILLS.get(table.upper(), f"table {table}")
        self.sink.issue("error", self.path, f"table {table} {problem}", remedy, place=place, lost=lost)


@contextmanager
def open_database(path: Path, sink: Sink) -> Iterator[Database]:
    """Open a SQLite file for reading alone: immutable, so that no journal is made or looked for beside it.

    Raises:
        sqlite3.Error: If it cannot be opened or is no database.
    """
    address = f"file:{quote_from_bytes(os.fsencode(path.absolute()))}?mode=ro&immutable=1"
    connection = sqlite3.connect(address, uri=True)
    try:
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        connection.execute("PRAGMA trusted_schema=OFF")
        database = Database(path, connection, sink)
        database.load_schema()
        yield database
    finally:
        connection.close()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
