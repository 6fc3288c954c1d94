"""What the allocator holds, event by event."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.csv_files.heading import is_data
from stepscope.sources.csv_files.layout import Field, FileLayout, column_key
from stepscope.sources.side_files import report_unreadable
from stepscope.tables.base import with_schema

_HEADERS = {
    "timestamp": "time_ns",
    "total_allocated": "allocated_bytes",
    "total_reserved": "reserved_bytes",
    "total_active": "active_bytes",
}
MEMORY = dict.fromkeys(_HEADERS.values(), pl.Int64)
_LAYOUT = FileLayout(tuple(Field(column, "int", (header,)) for header, column in _HEADERS.items()))


def read_memory(file: Path, sink: Sink) -> pl.DataFrame:
    """The curve of `cpu_ms_memory_record`, by the clock of the file, in its order.

    Returns:
        A frame with the columns of `MEMORY`.
    """
    try:
        text = file.read_bytes().decode("utf-8-sig", "replace").lstrip("\r\n")
    except OSError as error:
        report_unreadable(error, file, sink)
        return pl.DataFrame(schema=MEMORY)
    header, _, body = text.partition("\n")
    if is_data(header.strip().split(","), _LAYOUT):
        header, body = ",".join(_HEADERS), text
    columns = [_HEADERS.get(column_key(name)) for name in header.strip().split(",")]
    if "time_ns" not in columns:
        sink.issue("error", file, "has no column Timestamp(ns)", "Copy the file again, or record again")
        return pl.DataFrame(schema=MEMORY)
    whole, _, cut = body.rpartition("\n")  # what follows the last line's end was cut off
    lines = pl.Series("line", whole.splitlines(), dtype=pl.String).to_frame()
    parts = pl.col("line").str.split(",")
    named = {name: parts.list.get(at, null_on_oob=True) for at, name in enumerate(columns) if name}
    rows = lines.select(
        parts.list.len() == len(columns), **{n: v.cast(pl.Int64, strict=False) for n, v in named.items()}
    )
    amounts = [pl.col(name).fill_null(-1) >= 0 for name in named]
    sound = rows.filter(pl.col("line"), pl.col("time_ns") > 0, *amounts).drop("line")
    if lost := rows.height - sound.height + bool(cut.strip()):
        problem = f"{lost} lines are damaged and left out"
        sink.issue("warning", file, problem, "The rest is complete. Copy the file again if you need them", lost=lost)
    elif sound.is_empty():
        sink.issue("warning", file, "has a header but no rows", "Copy the file again, or record again")
    return with_schema(sound, MEMORY)
