"""What a table is: named columns with a type, a unit and a meaning, defined once for all sources and answers.

Nothing here loads Polars until a schema is asked for, so recorders may use the definitions.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import polars as pl

DType = Literal["int16", "int32", "int64", "float64", "string", "bool", "list[int32]", "list[int64]", "list[string]"]

ORDINARY = 100
"""Default importance of a column."""

UNITS = {
    "_ns": "ns",
    "bytes": "bytes",
    "bytes_per_s": "bytes/s",
    "ratio": "0 to 1",
    "_factor": "times",
    "flops": "FLOP",
    "flops_per_s": "FLOP/s",
}
"""Ends of names and their units."""

_SHOWN_CHARACTERS = 40
_NULL_ROWS = 4096


@dataclass(frozen=True)
class Column:
    """One column; unknown is null.

    Args:
        name: Its name, the same in Python, JSON and SQL.
        dtype: Its type.
        doc: What a value means, in one line.
        nullable: False if it is never null.
        title: Its heading; empty to derive it from the name without its unit. Words in braces, as `{step}`, become the
            word for a step of this recording: step, iteration or recording.
        importance: Narrow displays drop the least important columns first, and of equal ones the last.
        moment: Its values are moments on the clock of the recording; other times are durations, or count from the start
            of a step.
        values: All possible texts; empty if there may be others.
    """

    name: str
    dtype: DType
    doc: str
    nullable: bool = True
    title: str = ""
    importance: int = ORDINARY
    moment: bool = False
    values: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        """The unit, from the end of the name; empty for texts, counts and numbers."""
        return unit_of(self.name)

    @property
    def full_doc(self) -> str:
        """`doc` with all possible values."""
        return f"{self.doc} One of {', '.join(f'`{value}`' for value in self.values)}." if self.values else self.doc


RANK = Column("rank", "int32", "Global rank; filled when a run is opened.", nullable=False)
STEP = Column("step", "int32", "Training step as the source numbers it; 0 if it has no steps.")


def unit_of(name: str) -> str:
    """The unit that a name ends in.

    Examples:
        >>> unit_of("wait_ns"), unit_of("sent_bytes"), unit_of("steps")
        ('ns', 'bytes', '')
    """
    return next((unit for ending, unit in UNITS.items() if name.endswith(ending)), "")


@dataclass(frozen=True)
class Fitting:
    """Rows that fit a table, and the number of others.

    Args:
        rows: Rows that fit, in order, with the table's columns and types.
        lost: Number of other rows.
        example: What is wrong with one of them, e.g. `rank is 4294967296`; empty if all fit.
    """

    rows: pl.DataFrame
    lost: int = 0
    example: str = ""


@dataclass(frozen=True)
class Table:
    """One table: what a row is, its columns, and which of them identify a row of a rank, if any do.

    `rank` is the first column of every table, declared only if it has a meaning of its own. It is never stored: an input
    holds one rank, and the run that opens it adds its number (see `Run`).
    """

    name: str
    doc: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.columns[0].name != RANK.name:
            object.__setattr__(self, "columns", (RANK, *self.columns))

    @cached_property
    def schema(self) -> Mapping[str, pl.DataType]:
        """Column name to Polars type, in order, with `rank`."""
        return schema_of(self.columns)

    @cached_property
    def stored_schema(self) -> Mapping[str, pl.DataType]:
        """The schema without `rank`."""
        return schema_of(self.columns[1:])

    def or_empty(self, rows: pl.LazyFrame | None) -> pl.LazyFrame:
        """Rows of this table; none for those that can do without it."""
        return self._no_rows if rows is None else rows

    @cached_property
    def _never_null(self) -> tuple[str, ...]:
        """The stored columns that are not nullable."""
        return tuple(column.name for column in self.columns[1:] if not column.nullable)

    @cached_property
    def _no_rows(self) -> pl.LazyFrame:
        import polars as pl  # noqa: PLC0415 - see the module's first lines

        return pl.LazyFrame(schema=self.schema)

    def frame(self, **columns: Any) -> pl.DataFrame:
        """Build a frame of this table from whole columns; columns not given are null.

        Raises:
            ValueError: For an unknown column, or a null in a column that is not nullable.
        """
        import polars as pl  # noqa: PLC0415 - see the module's first lines

        frame = pl.DataFrame({name: pl.Series(name, values) for name, values in columns.items()})
        return self.conform(frame, with_rank="rank" in columns)

    def unchecked(self, **columns: Any) -> pl.DataFrame:
        """Some columns of this table with unchecked values; a sink leaves out rows that do not fit."""
        import polars as pl  # noqa: PLC0415 - see the module's first lines

        return pl.DataFrame([pl.Series(name, values, strict=False) for name, values in columns.items()])

    def conform(self, frame: pl.DataFrame, *, with_rank: bool = False) -> pl.DataFrame:
        """Give `frame` exactly this table's columns and types; missing columns become null.

        Raises:
            ValueError: For an unknown column, or a null in a column that is not nullable.
        """
        schema = self._schema(frame, with_rank=with_rank)
        out = with_schema(frame, schema)
        for column in self.columns:
            if not column.nullable and column.name in schema and out[column.name].null_count():
                raise ValueError(f"table {self.name}: column {column.name} may not be null")
        return out.clone()  # a frame may be given other columns in place

    def shaped(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Give `frame` this table's columns; missing ones become null.

        A column with a value that does not fit its type keeps its own type: `fitting` decides about the rows.

        Raises:
            ValueError: For an unknown column.
        """
        cells, strays = self._cells(frame)
        return cells.with_columns(frame[name] for name in strays) if strays else cells.clone()

    def fitting(self, frame: pl.DataFrame) -> Fitting:
        """The rows of `frame` with values that fit their types, and no null in a column that is not nullable.

        Raises:
            ValueError: For an unknown column.
        """
        cells, strays = self._cells(frame)
        refused = dict(strays)
        for name in self._never_null:
            if cells[name].null_count():
                refused[name] = cells[name].is_null()
        if not refused:
            return Fitting(cells)
        every = functools.reduce(operator.or_, refused.values())
        return Fitting(cells.filter(~every), int(every.sum()), _example(frame, refused))

    def facts(self, frame: pl.DataFrame) -> Fitting:
        """All rows of `frame`; a value that does not fit its type becomes null and counts as lost.

        Raises:
            ValueError: For an unknown column.
        """
        cells, strays = self._cells(frame, with_rank="rank" in frame.columns)
        return Fitting(cells, sum(int(stray.sum()) for stray in strays.values()), _example(frame, strays))

    def _schema(self, frame: pl.DataFrame, *, with_rank: bool) -> Mapping[str, pl.DataType]:
        schema = self.schema if with_rank else self.stored_schema
        unknown = set(frame.columns) - set(schema)
        if unknown:
            raise ValueError(f"table {self.name} has no column {sorted(unknown)}; it has {list(schema)}")
        return schema

    def _cells(self, frame: pl.DataFrame, *, with_rank: bool = False) -> tuple[pl.DataFrame, dict[str, pl.Series]]:
        """The columns of the table, null if a value does not fit, and a mask of those values by column."""
        cells = with_schema(frame, self._schema(frame, with_rank=with_rank), strict=False)
        if cells is frame:
            return cells, {}
        given = dict(zip(frame.columns, frame.get_columns(), strict=True))
        strays = {
            name: given[name].is_not_null() & cells[name].is_null()
            for name in given
            if cells[name].null_count() != given[name].null_count()
        }
        return cells, strays


def _example(frame: pl.DataFrame, refused: Mapping[str, pl.Series]) -> str:
    """What is wrong with the first refused row."""
    if not refused:
        return ""
    name = next(iter(refused))
    at = int(refused[name].arg_true()[0])
    value = frame[name][at] if name in frame.columns else None
    return f"{name} is {'missing' if value is None else shortened(value)}"


def shortened(value: object) -> str:
    """A value in few characters."""
    text = str(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def with_schema(
    frame: pl.DataFrame, schema: Mapping[str, pl.DataType | type[pl.DataType]], *, strict: bool = True
) -> pl.DataFrame:
    """`frame` with exactly the columns and types of `schema`; missing columns become null.

    Column by column: for a small frame, a Polars query would cost more than all other work on it.

    Args:
        frame: Any columns.
        schema: Column names and types, in order.
        strict: Raise for values that do not fit their type; otherwise they become null.

    Raises:
        polars.exceptions.InvalidOperationError: If a value does not fit its type.
    """
    import polars as pl  # noqa: PLC0415 - see the module's first lines

    dtypes = dict(zip(frame.columns, frame.dtypes, strict=True))
    if list(dtypes) == list(schema) and all(map(operator.eq, dtypes.values(), schema.values())):
        return frame
    columns = dict(zip(dtypes, frame.get_columns(), strict=True))
    rows, out = frame.height, []
    for name, dtype in schema.items():
        column = columns.get(name)
        if column is None:
            column = nulls(name, dtype, rows)
        elif dtypes[name] != dtype:
            column = column.cast(dtype, strict=True) if strict else _cast_or_null(column, dtype)
        out.append(column)
    return frame_of(out) if out else pl.DataFrame()


def frame_of(columns: list[pl.Series]) -> pl.DataFrame:
    """At least one column of one length each as a frame, in a quarter of the time that `DataFrame` takes."""
    return columns[0].to_frame().hstack(columns[1:])


def columns_of(rows: Sequence[Sequence[Any]], schema: Mapping[str, pl.DataType | type[pl.DataType]]) -> list[pl.Series]:
    """The columns of rows that have a value for each of `schema`."""
    import polars as pl  # noqa: PLC0415 - see the module's first lines

    values = zip(*rows, strict=True) if rows else [()] * len(schema)
    return [pl.Series(name, column, dtype=schema[name]) for name, column in zip(schema, values, strict=True)]


def nulls(name: str, dtype: pl.DataType | type[pl.DataType], rows: int) -> pl.Series:
    """A column without values."""
    kept = _nulls(name, dtype)
    column: pl.Series = kept.slice(0, rows) if rows <= _NULL_ROWS else kept.new_from_index(0, rows)
    return column


def repeated(name: str, value: object, dtype: pl.DataType | type[pl.DataType], rows: int) -> pl.Series:
    """A column of one value, in a tenth of the time that `polars.repeat` takes."""
    import polars as pl  # noqa: PLC0415 - see the module's first lines

    column: pl.Series = pl.Series(name, [value], dtype=dtype).new_from_index(0, rows)
    return column


@functools.cache
def _nulls(name: str, dtype: pl.DataType | type[pl.DataType]) -> pl.Series:
    """A column of `_NULL_ROWS` nulls: to give a part of it costs a third of making one."""
    column: pl.Series = _unnamed_nulls(dtype).alias(name)
    return column


@functools.cache
def _unnamed_nulls(dtype: pl.DataType | type[pl.DataType]) -> pl.Series:
    import polars as pl  # noqa: PLC0415 - see the module's first lines

    column: pl.Series = pl.Series([None], dtype=dtype).new_from_index(0, _NULL_ROWS)
    return column


def _cast_or_null(column: pl.Series, dtype: pl.DataType | type[pl.DataType]) -> pl.Series:
    """The column as `dtype`; values that do not fit are null."""
    import polars as pl  # noqa: PLC0415 - see the module's first lines

    try:
        cast: pl.Series = column.cast(dtype, strict=False)
    except pl.exceptions.PolarsError:  # nothing of such a type fits, e.g. a list where a number belongs
        cast = nulls(column.name, dtype, len(column))
    return cast


def schema_of(columns: Iterable[Column]) -> dict[str, pl.DataType]:
    """Column name to Polars type, in order."""
    import polars as pl  # noqa: PLC0415 - see the module's first lines

    types: dict[str, pl.DataType] = {
        "int16": pl.Int16(),
        "int32": pl.Int32(),
        "int64": pl.Int64(),
        "float64": pl.Float64(),
        "string": pl.String(),
        "bool": pl.Boolean(),
        "list[int32]": pl.List(pl.Int32()),
        "list[int64]": pl.List(pl.Int64()),
        "list[string]": pl.List(pl.String()),
    }
    return {column.name: types[column.dtype] for column in columns}
