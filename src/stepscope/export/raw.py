"""The raw CSV files of a recording, for what no table holds: the host's memory, batches, marks as they were taken."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl

MARKS = {
    "kind": pl.String,
    "name": pl.String,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "step": pl.Int32,
    "thread": pl.Int64,
    "detail": pl.String,
}
BATCHES = {
    "time_ns": pl.Int64,
    "pipeline": pl.String,
    "batch": pl.Int64,
    "step": pl.Int32,
    "wait_ns": pl.Int64,
    "queue_size": pl.Int64,
    "queue_capacity": pl.Int64,
    "workers": pl.Int64,
}
_COUNTS = (
    "user_ns,system_ns,idle_ns,io_wait_ns,rss_bytes,uss_bytes,available_bytes,total_bytes,"
    "read_bytes,written_bytes,threads,context_switches,runnable,processors"
)
HOST = {
    "time_ns": pl.Int64,
    "scope": pl.String,
    "pid": pl.Int64,
    "name": pl.String,
    **dict.fromkeys(_COUNTS.split(","), pl.Int64),
}
WINDOWS = {"window": pl.Int64, "state": pl.String, "kind": pl.String}
DEVICE = {"time_ns": pl.Int64, "device": pl.Int32, "name": pl.String, "value": pl.Float64}

Schema = dict[str, type[pl.DataType]]

FILES: dict[str, Schema] = {
    "marks": MARKS,
    "batches": BATCHES,
    "host": HOST,
    "device": DEVICE,
    "windows": WINDOWS,
}
_TIMES = ("start_ns", "end_ns", "time_ns")


def read_times(recording: Path, name: str, shift_ns: int) -> pl.DataFrame:
    """The rows of a raw file with its times moved to rank 0's clock, as those in the tables are.

    Args:
        recording: The directory of raw data.
        name: One of `FILES`.
        shift_ns: Offset of the clocks.
    """
    rows = read_raw(recording / f"{name}.csv", FILES[name])
    return rows.with_columns(pl.col(column) + shift_ns for column in _TIMES if column in rows.columns)


def read_raw(path: Path, schema: Schema) -> pl.DataFrame:
    """The rows of a raw file up to its last newline; empty where there is no such file.

    Columns are found by the header; one that the file lacks is null, and so is a cell that is no number.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return pl.DataFrame(schema=schema)
    whole = data[: data.rfind(b"\n") + 1]
    if whole.count(b"\n") < 2:
        return pl.DataFrame(schema=schema)
    texts = pl.read_csv(io.BytesIO(whole), infer_schema=False, truncate_ragged_lines=True, encoding="utf8-lossy")
    return texts.select(
        pl.col(name).cast(kind, strict=False) if name in texts.columns else pl.lit(None, kind).alias(name)
        for name, kind in schema.items()
    )
