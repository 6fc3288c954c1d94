"""The communication of each step by stream, with the gaps between the calls: what MindSpore calls reduces."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.step_trace import POINTS
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

_PLACE = ["rank", "graph", "step", "stream"]


@analysis(
    "rank",
    columns(
        "rank graph step stream",
        Column("segment", "string", "`call`, or `gap` between calls."),
        meaning("name", "Name of the call; null for a gap."),
        meaning("operation", "Operation of the call, e.g. `all_reduce`; null for a gap."),
        meaning("place", "Position among calls of its name (or operation), from 0; null for a gap."),
        Column("call", "int64", "Number of the call among those of a step, the same in every step; null for a gap."),
        Column("collective", "int64", "Number of its row in `collectives`; null for a gap."),
        Column("start_ns", "int64", "Start, counted from the start of the step."),
        "duration_ns",
        keep="step name duration_ns start_ns stream segment",
    ),
    passes=POINTS,
)
def step_reduces(
    step_trace: pl.DataFrame, collectives: pl.LazyFrame, steps: pl.LazyFrame, on_host: bool = False
) -> pl.DataFrame:
    """Lay out the device's communication of each step by stream.

    Of each stream, the first gap begins where forward does (else with the step), the last one ends with the step; calls
    that overlap leave no gap between them, and a call before forward begins has none before it.

    Args:
        step_trace: The steps, and where forward begins.
        collectives: Communication calls.
        steps: All steps, as calls may be marked in steps in which nothing else was recorded.
        on_host: For ranks without calls of a device, lay out those of the host, which have no stream.

    Returns:
        One row for each call and gap, in order.
    """
    calls = _calls(step_trace, collectives, steps, on_host=on_host)
    if calls.is_empty():
        raise Unavailable("no communication of the device was recorded in the measured windows")
    gaps = pl.concat([_gaps_before(calls), _gaps_after(calls)])
    empty = gaps.with_columns(
        segment=pl.lit("gap"),
        name=pl.lit(None, pl.String),
        operation=pl.lit(None, pl.String),
        place=pl.lit(None, pl.Int64),
        call=pl.lit(None, pl.Int64),
        collective=pl.lit(None, pl.Int64),
    )
    columns = [*_PLACE, "segment", "name", "operation", "place", "call", "collective", "start_ns", "duration_ns"]
    named = calls.with_columns(segment=pl.lit("call"))
    return pl.concat([named.select(columns), empty.select(columns)]).sort(*_PLACE, "start_ns", "duration_ns")


@analysis(
    "rank",
    columns(
        "rank graph stream",
        meaning("name", "Name of the call; null if it differs from step to step."),
        "operation place",
        meaning("steps", "Number of steps that have the call."),
        Column("mean_start_ns", "int64", "Start, counted from the start of the step, mean."),
        "mean_ns",
        Column("mean_start_without_first_ns", "int64", "The same without the first step; null if there is no other."),
        "mean_without_first_ns",
        keep="name mean_ns stream place steps mean_start_ns",
    ),
    together=True,
    passes=POINTS,
)
def step_reduce_statistics(step_reduces: pl.DataFrame) -> pl.DataFrame:
    """Average the calls of `step_reduces` over steps.

    Returns:
        One row for each stream, name, operation and place, by start.
    """
    keys = ["rank", "graph", "stream", "name", "operation", "place"]
    first = pl.col("step").min().over("rank", "graph")
    name = pl.when(_lasts()).then("name")
    rows = step_reduces.filter(pl.col("segment") == "call").with_columns(later=pl.col("step") > first, name=name)
    later = pl.col("later")
    means = {
        "mean_start_ns": pl.col("start_ns").mean(),
        "mean_ns": pl.col("duration_ns").mean(),
        "mean_start_without_first_ns": pl.col("start_ns").filter(later).mean(),
        "mean_without_first_ns": pl.col("duration_ns").filter(later).mean(),
    }
    return (
        rows.group_by(keys)
        .agg(
            steps=pl.len().cast(pl.Int64),
            **{name: rounded(mean) for name, mean in means.items()},
        )
        .sort("rank", "graph", "stream", "mean_start_ns", *keys)
    )


def _calls(step_trace: pl.DataFrame, collectives: pl.LazyFrame, steps: pl.LazyFrame, *, on_host: bool) -> pl.DataFrame:
    """The calls with their steps, by stream and start; times are since the start of the step."""
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
    end = (pl.col("start_ns") + pl.col("duration_ns")).cum_max()
    return _numbered(rows.with_columns(place=place, same=name, end_ns=end.over(_PLACE)))


def _numbered(calls: pl.DataFrame) -> pl.DataFrame:
    """Calls with `call`: the number of those that are the same in every step, by their mean place in a step."""
    order = pl.int_range(pl.len()).over("rank", "graph", "step", order_by="start_ns")
    same = ["stream", "operation", "same", "place"]
    kinds = calls.with_columns(order=order).group_by("rank", *same).agg(pl.col("order").mean())
    numbers = kinds.sort("rank", "order", *same).select(
        "rank", *same, call=pl.int_range(pl.len(), dtype=pl.Int64).over("rank")
    )
    return calls.join(numbers, on=["rank", *same], how="left", nulls_equal=True, maintain_order="left")


def _lasts() -> pl.Expr:
    """Whether a name stands for the same call in every step; some sources number calls throughout the recording."""
    steps = pl.col("step").n_unique()
    return (steps.over("rank", "stream", "name") > 1) | (steps.over("rank", "stream") == 1)


def _gaps_before(calls: pl.DataFrame) -> pl.DataFrame:
    """What lies before each call and after those before it on its stream, from where forward begins."""
    since = pl.col("end_ns").shift(1).over(_PLACE).fill_null(pl.col("forward_ns"))
    gaps = calls.with_columns(since_ns=since)
    return _lasting(gaps.select(*_PLACE, start_ns="since_ns", duration_ns=pl.col("start_ns") - pl.col("since_ns")))


def _gaps_after(calls: pl.DataFrame) -> pl.DataFrame:
    """What lies between the last call of a stream and the end of the step."""
    last = calls.group_by(_PLACE, maintain_order=True).last()
    return _lasting(last.select(*_PLACE, start_ns="end_ns", duration_ns=pl.col("step_ns") - pl.col("end_ns")))


def _lasting(gaps: pl.DataFrame) -> pl.DataFrame:
    return gaps.filter(pl.col("duration_ns") > 0)
