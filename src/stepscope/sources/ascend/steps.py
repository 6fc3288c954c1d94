"""Training steps: which step work belongs to, and the window in which a step's times are summed."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from stepscope.sources.ascend.exported_rank import STEPS as HOST_RANGES
from stepscope.sources.ascend.exported_rank import shaped
from stepscope.sources.windows import device_windows
from stepscope.tables import STEPS
from stepscope.tables.base import nulls, repeated
from stepscope.tables.steps import WHOLE_RECORDING

STEP_NAME = r"^ProfilerStep#(\d{1,9})"
"""Name of the host range of a step."""


def step_ranges(host: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Host ranges of steps, by their name, each step once, in order of start."""
    named = pl.col("name").str.starts_with("ProfilerStep#")
    found = [frame.select("name", "start_ns", "duration_ns").filter(named) for frame in host]
    if not found:
        return pl.DataFrame(schema=HOST_RANGES)
    return clean_ranges(
        pl.concat(found).select(
            step=pl.col("name").str.extract(STEP_NAME).cast(pl.Int32),
            start_ns="start_ns",
            end_ns=pl.col("start_ns") + pl.col("duration_ns"),
        )
    )


def clean_ranges(found: pl.DataFrame) -> pl.DataFrame:
    """Ranges with a number, each step once, in order of start."""
    ranges = shaped(found, HOST_RANGES).drop_nulls().sort("start_ns")
    return ranges.unique("step", keep="first", maintain_order=True)


def step_at(times: pl.Series, ranges: pl.DataFrame, *, inside: bool) -> pl.Series:
    """The step of each time: the last that began at or before it.

    Args:
        times: ns, may hold nulls.
        ranges: `step_ranges`.
        inside: Leave out work after the end of a step; otherwise it belongs to the step before it.
    """
    if ranges.is_empty():
        return repeated("step", 0, pl.Int32, len(times))
    # before the first one, and at no time, is none
    at = ranges["start_ns"].search_sorted(times, side="right")
    if times.null_count():
        at = at.set(times.is_null(), 0)
    steps: pl.Series = nulls("step", pl.Int32, 1).append(ranges["step"])[at]
    if inside:
        ends = nulls("end_ns", pl.Int64, 1).append(ranges["end_ns"])[at]
        steps = steps.zip_with(times <= ends, nulls("step", pl.Int32, len(times)))
    return steps


def steps_table(ranges: pl.DataFrame, spans: pl.DataFrame, span: tuple[int, int] | None) -> pl.DataFrame:
    """Rows of `steps`.

    A step's window goes from its first compute or communication kernel to the first of the next step; the last
    one ends with the last such kernel (see `device_windows`).

    Of a recording in parts, each part's windows are laid for themselves, and steps without a part are not recorded.

    Args:
        ranges: `recording.STEPS`, perhaps with `part`; empty if the recording has none.
        spans: `step_spans` of computing and communication, of any number of parts of it.
        span: First and last time of the recording; None if it is empty.
    """
    if "part" in ranges.columns and ranges["part"].count():
        return _in_parts(ranges, spans)
    first = spans.group_by("step").agg(pl.min("first_ns")).drop_nulls("step").sort("first_ns")
    last_ns = spans.select(pl.max("last_ns")).item()
    if ranges.is_empty() and not first.filter(pl.col("step") != 0).is_empty():
        # Steps are known from the kernels only; the host's part of them was not recorded.
        windows = first.with_columns(last=pl.col("first_ns").shift(-1).fill_null(last_ns))
        ranges = windows.select("step", start_ns="first_ns", end_ns="last")
    if has_none := ranges.is_empty():
        ranges = pl.DataFrame([] if span is None else [(0, *span)], schema=HOST_RANGES, orient="row")
    rows = ranges.join(first, on="step", how="left").sort("start_ns")
    if has_none or not rows["first_ns"].count():
        host = rows.select("step", "start_ns", "end_ns", window_start_ns="start_ns", window_end_ns="end_ns")
        return STEPS.shaped(host.with_columns(window=pl.lit(WHOLE_RECORDING if has_none else "host")))
    windows = device_windows(rows["first_ns"], last_ns)
    laid = pl.concat([rows.select("step", "start_ns", "end_ns"), windows], how="horizontal")
    return STEPS.shaped(laid.with_columns(window=pl.lit("device")))


def _in_parts(ranges: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Rows of `steps` of a recording in parts, some of whose steps may be in none."""
    rows = []
    for part in ranges.partition_by("part", maintain_order=True):
        has_work = part["part"][0] is not None
        own = spans.filter(pl.col("step").is_in(part["step"].to_list()) & has_work)
        rows.append(steps_table(part.drop("part"), own, None).with_columns(recorded=has_work))
    table = pl.concat(rows).sort("start_ns")
    return table if ranges["part"].null_count() else table.with_columns(recorded=pl.lit(None, pl.Boolean))
