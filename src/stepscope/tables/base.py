"""What a table is: named columns with a type, a unit and a meaning, defined once for all sources and answers.

Nothing here loads Polars until a schema is asked for, so recorders may use the definitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import polars as pl

DType = Literal["int16", "int32", "int64", "float64", "string", "bool", "list[int32]"]


@dataclass(frozen=True)
class Column:
    """One column. Its unit is the suffix of its name (`_ns`, `_bytes`, `_ratio`); unknown is null."""

    name: str
    dtype: DType
    doc: str
    nullable: bool = True


@dataclass(frozen=True)
class Table:
    """One table: what a row is, its key and its columns.

    `rank` is never stored: an input holds one rank, and the run that opens it says which (see `Run`).
    """

    name: str
    doc: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """Column name to Polars type, in order, with `rank`."""
        return {c.name: polars_type(c.dtype) for c in self.columns}

    @property
    def stored_schema(self) -> dict[str, pl.DataType]:
        """The schema without `rank`."""
        return {c.name: polars_type(c.dtype) for c in self.columns if c.name != "rank"}

    def frame(self, **columns: Any) -> pl.DataFrame:
        """Build a frame of this table from whole columns; columns not given are null.

        Raises:
            ValueError: For a column that the table does not have, or a null in one that has none.
        """
        import polars as pl  # noqa: PLC0415 - see the module's first lines

        frame = pl.DataFrame({name: pl.Series(name, values) for name, values in columns.items()} if columns else {})
        return self.conform(frame, with_rank="rank" in columns)

    def conform(self, frame: pl.DataFrame, *, with_rank: bool = False) -> pl.DataFrame:
        """Give `frame` exactly this table's columns and types; missing columns become null.

        Raises:
            ValueError: For a column that the table does not have, or a null where the table allows none.
        """
        import polars as pl  # noqa: PLC0415 - see the module's first lines

        schema = self.schema if with_rank else self.stored_schema
        unknown = set(frame.columns) - set(schema)
        if unknown:
            raise ValueError(f"table {self.name} has no column {sorted(unknown)}; it has {list(schema)}")
        out = frame.select(
            pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype).alias(name)
            for name, dtype in schema.items()
        )
        for column in self.columns:
            if not column.nullable and column.name in out.columns and out[column.name].null_count():
                raise ValueError(f"table {self.name}: column {column.name} may not be null")
        return out


def polars_type(dtype: DType) -> pl.DataType:
    """The Polars type of a column type."""
    import polars as pl  # noqa: PLC0415 - see the module's first lines

    types: dict[str, pl.DataType] = {
        "int16": pl.Int16(),
        "int32": pl.Int32(),
        "int64": pl.Int64(),
        "float64": pl.Float64(),
        "string": pl.String(),
        "bool": pl.Boolean(),
        "list[int32]": pl.List(pl.Int32()),
    }
    return types[dtype]


RANK = Column("rank", "int32", "Global rank; filled when a run is opened.", nullable=False)
STEP = Column("step", "int32", "Training step as the source numbers it; 0 where it has no steps.")
