"""The communication calls of each step by stream and the gaps between them ("reduces" in MindSpore)."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.intervals import END
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.step_trace import POINTS
from stepscope.errors import Unavailable
from stepscope.tables.base import Column, schema_of, with_schema

_PLACE = ["rank", "graph", "step", "stream"]


COLUMNS = columns(
    "rank graph step stream",
    Column("segment", "string", "`call`, or `gap` between calls."),
    meaning("name", "Name of the call; null for a gap."),
    meaning("operation", "Operation of the call, e.g. `all_reduce`; null for a gap."),
    meaning("place", "Position among calls of its name (or operation), from 0; null for a gap."),
    Column("call", "int64", "Number of the call within a step, the same in every step; null for a gap."),
    Column("collective", "int64", "Number of its row in `collectives`; null for a gap."),
    Column("start_ns", "int64", "Start, relative to the start of the step."),
    "duration_ns",
    keep="step name duration_ns start_ns stream segment",
)


NO_CALLS = "no device communication was recorded in the measured windows"


@analysis("rank", COLUMNS, together=True, nothing=NO_CALLS, passes=POINTS, across_steps=True)
def step_reduces(
    step_trace: pl.DataFrame, collectives: pl.LazyFrame, steps: pl.LazyFrame, on_host: bool = False
) -> pl.DataFrame:
    """List the device's communication calls and the gaps between them, by step and stream, in order.

    On each stream, the first gap begins at the start of forward (or of the step if that is unknown) and the last one
    ends with the step. Overlapping calls have no gap between them, nor has a call before forward one before it.

    Args:
        on_host: For ranks without device calls, list the host's calls, which have no stream.

    Raises:
        Unavailable: If no such calls were recorded.
    """
    calls = _calls(step_trace, collectives, steps, on_host=on_host)
    if calls.is_empty():
        raise Unavailable(NO_CALLS)
    kinds = {"call": calls, "gap": _gaps(calls)}
    parts = [with_schema(rows.with_columns(segment=pl.lit(kind)), schema_of(COLUMNS)) for kind, rows in kinds.items()]
    return pl.concat(parts).sort(*_PLACE, "start_ns", "duration_ns")


@analysis(
    "rank",
    columns(
        "rank graph stream",
        meaning("name", "Name of the call; null if it differs from step to step."),
        "operation place",
        meaning("steps", "Number of steps that contain the call."),
        Column("mean_start_ns", "int64", "Mean start, relative to the start of the step."),
        "mean_ns",
        Column(
            "mean_start_without_first_ns", "int64", "Mean start without the first step; null if there is only one step."
        ),
        "mean_without_first_ns",
        keep="name mean_ns stream place steps mean_start_ns",
    ),
    together=True,
    passes=POINTS,
)
def step_reduce_statistics(step_reduces: pl.DataFrame) -> pl.DataFrame:
    """Average the calls of `step_reduces` over steps: one row per stream, name, operation and place, by start."""
    keys = ["rank", "graph", "stream", "name", "operation", "place"]
    first = pl.col("step").min().over("rank", "graph")
    name = pl.when(_lasts()).then("name")
    rows = step_reduces.filter(pl.col("segment") == "call").with_columns(later=pl.col("step") > first, name=name)
    return (
        rows.group_by(keys)
        .agg(
            steps=pl.len().cast(pl.Int64),
            mean_start_ns=rounded(pl.col("start_ns").mean()),
            mean_ns=rounded(pl.col("duration_ns").mean()),
            mean_start_without_first_ns=rounded(pl.col("start_ns").filter("later").mean()),
            mean_without_first_ns=rounded(pl.col("duration_ns").filter("later").mean()),
        )
        .sort("rank", "graph", "stream", "mean_start_ns", *keys)
    )


def _calls(step_trace: pl.DataFrame, collectives: pl.LazyFrame, steps: pl.LazyFrame, *, on_host: bool) -> pl.DataFrame:
    """The calls with their steps, by stream and start; times are relative to the start of the step."""
    forward = step_trace.lazy().select("rank", "graph", "step", forward_ns=pl.col("interval_ns"))
    bounds = steps.select(
        *("rank", "graph", "step"),
        at_ns="window_start_ns",
        step_ns=pl.col("window_end_ns") - pl.col("window_start_ns"),
    ).join(forward, on=["rank", "graph", "step"], how="left", nulls_equal=True)
    wanted = pl.col("on_device")
    if on_host:
        wanted |= ~pl.col("on_device").any().over("rank")
    rows = (
        collectives.filter(wanted)
        .join(bounds, on=["rank", "step"])
        .select(
            *("rank", "graph", "step", "stream", "name", "operation", "collective", "step_ns", "duration_ns"),
            forward_ns=pl.col("forward_ns").fill_null(0),
            start_ns=pl.col("start_ns") - pl.col("at_ns"),
        )
        .sort(*_PLACE, "start_ns", "duration_ns", "name")
        .collect()
    )
    name = pl.when(_lasts()).then("name").otherwise("operation")
    place = pl.int_range(pl.len()).over(*_PLACE, name)
    return _numbered(rows.with_columns(place=place, same=name, end_ns=END.cum_max().over(_PLACE)))


def _numbered(calls: pl.DataFrame) -> pl.DataFrame:
    """Calls with `call`: their number, which is the same in every step, by mean position in a step."""
    order = pl.int_range(pl.len()).over("rank", "graph", "step", order_by="start_ns")
    same = ["stream", "operation", "same", "place"]
    kinds = calls.with_columns(order=order).group_by("rank", *same).agg(pl.col("order").mean())
    numbers = kinds.sort("rank", "order", *same).select(
        "rank", *same, call=pl.int_range(pl.len(), dtype=pl.Int64).over("rank")
    )
    return calls.join(numbers, on=["rank", *same], how="left", nulls_equal=True, maintain_order="left")


def _lasts() -> pl.Expr:
    """Whether a name means the same call in every step; some sources number calls throughout the recording."""
    steps = pl.col("step").n_unique()
    return (steps.over("rank", "stream", "name") > 1) | (steps.over("rank", "stream") == 1)


def _gaps(calls: pl.DataFrame) -> pl.DataFrame:
    """The gaps of each stream: before each call, the first one since the start of forward, and after the last call."""
    since = pl.col("end_ns").shift(1).over(_PLACE).fill_null(pl.col("forward_ns"))
    before = calls.select(*_PLACE, since.alias("since_ns"), until_ns="start_ns")
    last = calls.group_by(_PLACE, maintain_order=True).last()
    gaps = pl.concat([before, last.select(*_PLACE, since_ns="end_ns", until_ns="step_ns")])
    found = gaps.select(*_PLACE, start_ns="since_ns", duration_ns=pl.col("until_ns") - pl.col("since_ns"))
    return found.filter(pl.col("duration_ns") > 0)
