"""`RuntimeProfilerDetail`: lines of events, below a line for their step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink

EVENTS = {
    "step": pl.Int32,
    "module": pl.String,
    "event": pl.String,
    "operator": pl.String,
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "thread": pl.Int64,
    "process": pl.Int64,
}
STATED = {"step": pl.Int32, "length_ns": pl.Int64}
"""Lengths of steps."""

_STEP_LINE = r"^\[Step:(\d{1,9}),? "
_EVENT = (
    r"^(?:module|stage):(?P<module>.*?), event:(?P<event>.*?), op:(?P<operator>.*), "
    r"start_time:(?P<start>\d{1,19}), end_time:(?P<end>\d{1,19}), dur_time:.*?, tid:(?P<thread>\d{1,18}), "
    r"pid:(?P<process>\d{1,18})\s*$"
)
_BLOCK_BYTES = 16 << 20
_MOST_BLOCKS = 4


def read_detail(path: Path, sink: Sink) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Events and lengths of steps, in parts of whole steps where these are not very large.

    Args:
        path: The file.
        sink: Told how many lines cannot be read.

    Returns:
        Frames with the columns of `EVENTS` (in the order of the file) and of `STATED`.

    Raises:
        OSError: If the file cannot be read.
    """
    step: int | None = None
    lost, first, line = 0, 0, 0
    for block in _blocks(path):
        lines = pl.Series("line", block.decode("utf-8", "replace").split("\n"), dtype=pl.String).to_frame()
        numbered = lines.with_columns(step=pl.col("line").str.extract(_STEP_LINE, 1).cast(pl.Int32)).with_columns(
            of=pl.col("step").forward_fill().fill_null(pl.lit(step, pl.Int32)),
            parts=pl.col("line").str.extract_groups(_EVENT),
        )
        events = numbered.select(pl.col("of").alias("step"), "line", pl.col("parts").struct.unnest())
        rows = _typed(events)
        is_event = rows["duration_ns"].is_not_null() & (rows["duration_ns"] >= 0)
        expected = (lines["line"].str.strip_chars() != "") & numbered["step"].is_null()
        if damaged := int((expected & ~is_event).sum()):
            first = first or line + 1 + int((expected & ~is_event).arg_true()[0])
            lost += damaged
        line += block.count(b"\n")
        step = numbered["of"][-1]
        yield rows.filter(is_event).select(*EVENTS), _lengths(numbered)
    if lost:
        problem = f"{lost} lines are not readable events and are left out"
        remedy = "The rest is complete. Copy the file again if you need them"
        sink.issue("warning", path, problem, remedy, place=f"first: line {first}", lost=lost)


def _typed(events: pl.DataFrame) -> pl.DataFrame:
    start, end = (pl.col(name).cast(pl.Int64, strict=False) for name in ("start", "end"))
    return events.select(
        "step",
        "module",
        "event",
        "operator",
        start_ns=start,
        duration_ns=end - start,
        thread=pl.col("thread").cast(pl.Int64, strict=False),
        process=pl.col("process").cast(pl.Int64, strict=False),
    )


def _lengths(numbered: pl.DataFrame) -> pl.DataFrame:
    length = pl.col("line").str.extract(r"step_time:(\d{1,18})ns", 1).cast(pl.Int64, strict=False)
    return numbered.drop_nulls("step").select("step", length_ns=length)


def _blocks(path: Path) -> Iterator[bytes]:
    """Text of whole lines, which ends before the line of a step if one is near."""
    rest = b""
    with path.open("rb") as file:
        while piece := file.read(_BLOCK_BYTES):
            rest += piece
            cut = rest.rfind(b"\n[Step:") + 1
            if not cut and len(rest) >= _MOST_BLOCKS * _BLOCK_BYTES:
                cut = rest.rfind(b"\n") + 1
            if cut and len(piece) == _BLOCK_BYTES:
                yield rest[:cut]
                rest = rest[cut:]
    if rest:
        yield rest
