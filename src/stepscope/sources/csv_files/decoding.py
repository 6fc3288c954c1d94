"""Text of a CSV file as columns, by the compiled decoder if it accepts the text, otherwise by Polars."""

from __future__ import annotations

import polars as pl

from stepscope.sources.csv_files.layout import Field, Kind
from stepscope.sources.csv_files.values import READ_AS, in_our_unit
from stepscope.sources.native.columns import TableColumn, read_table
from stepscope.sources.native.library import Refused, is_available
from stepscope.tables.base import frame_of


def decode(text: bytes, width: int, chosen: dict[int, Field]) -> pl.DataFrame:
    """The rows of a text.

    Args:
        text: Header and whole rows.
        width: Columns of the header.
        chosen: Position to field of the columns that are read.

    Raises:
        polars.exceptions.PolarsError: If the rows cannot be separated.
    """
    frame = _plain(text, width, chosen)
    return _scan(text, width, chosen).collect() if frame is None else frame


def _plain(text: bytes, width: int, chosen: dict[int, Field]) -> pl.DataFrame | None:
    """The rows as the compiled decoder reads them, in a quarter of the time; None if it refuses them."""
    if not is_available():
        return None
    kinds: list[TableColumn | None] = [_read_as(chosen[at].kind) if at in chosen else None for at in range(width)]
    try:
        columns = read_table(text, kinds, [chosen[at].column for at in sorted(chosen)])
    except Refused:
        return None
    read = {column.name: column for column in columns}
    return frame_of([_finished(read[field.column], field) for field in chosen.values()])


def _read_as(kind: Kind) -> TableColumn:
    return "raw" if kind == "device" else kind


def _finished(column: pl.Series, field: Field) -> pl.Series:
    """A column of the compiled decoder as values of its field: all but devices are that already."""
    if field.kind != "device":
        return column
    number: pl.Series = column.cast(pl.Int32, strict=False)
    if number.null_count() == column.null_count() and not (number < 0).any():  # usually there is no text around it
        return number
    return column.to_frame().select(in_our_unit(pl.col(column.name), field)).to_series()


def unreadable_cells(
    text: bytes, width: int, chosen: dict[int, Field], frame: pl.DataFrame, required: list[Field]
) -> dict[str, int]:
    """Number of unreadable values by header of their column; rows without a required one are counted separately."""
    doubtful = {
        at: field
        for at, field in chosen.items()
        if field not in required and field.kind not in ("text", "shape") and frame[field.column].null_count()
    }
    if not doubtful:
        return {}
    as_text = {at: Field(field.column, "text", field.headers) for at, field in doubtful.items()}
    raw = decode(text, width, as_text)
    if raw.height != frame.height:
        return {}
    lost = {
        field.headers[0]: int((raw[field.column].is_not_null() & frame[field.column].is_null()).sum())
        for field in doubtful.values()
    }
    return {header: count for header, count in lost.items() if count}


def _scan(text: bytes, width: int, chosen: dict[int, Field]) -> pl.LazyFrame:
    header, _, body = text.partition(b"\n")
    # Polars counts the fields of the first row: one that is whole stands before a row that may not be.
    rows = pl.scan_csv(
        header + b"\n" + b"," * (width - 1) + b"\n" + body if width > 1 else text,
        has_header=False,
        skip_rows=1,
        schema={
            f"{at}": READ_AS.get(chosen[at].kind, pl.Float64) if at in chosen else pl.String for at in range(width)
        },
        null_values=["N/A", "NA", ""],
        truncate_ragged_lines=True,
        ignore_errors=True,
        encoding="utf8-lossy",
        glob=False,
    )
    rows = rows.slice(1) if width > 1 else rows
    return rows.select(in_our_unit(pl.col(f"{at}"), field).alias(field.column) for at, field in chosen.items())
