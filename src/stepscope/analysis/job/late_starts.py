"""Ranks that begin what was recorded later than the others, which then wait for them in their first call."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables.base import Column


@dataclass(frozen=True)
class Limits:
    """When a late start is worth a word."""

    waited_ratio: float = limit(0.05, "of all recorded steps", "chosen by us: less is lost among other waiting")
    own_ratio: float = limit(0.5, "of its lateness in the call", "chosen by us: the rest may have come about later")


COLUMNS = columns(
    "rank",
    meaning("step", "The first recorded step of the job."),
    Column("start_late_ns", "int64", "How much later than the median rank it begins this step."),
    Column("waited_ns", "int64", "How much later than the median rank it enters the first call in it."),
    Column("waited_ratio", "float64", "This over the time of all steps of the median rank.", title="waited"),
    Column("calls_last", "int64", "Number of calls, from the first one on, in which it arrives last."),
    meaning("calls", "Number of calls in which it took part."),
    Column("steps", "int64", "Number of steps of the median rank."),
)


@analysis("job", COLUMNS, whole_job=True)
def late_starts(
    arrival: pl.DataFrame, steps: pl.LazyFrame, clocks: pl.DataFrame | None, limits: Limits = Limits()
) -> pl.DataFrame:
    """Find the rank that begins the recording so much later than the others that they wait for it: no or one row.

    What delayed it lies before the recording, so no kind of work is to blame, and it is unknown whether it recurs.

    Raises:
        Unavailable: If no steps are marked.
    """
    offsets = pl.DataFrame(schema={"rank": pl.Int32, "offset_ns": pl.Int64}) if clocks is None else clocks
    bounds = (
        steps.filter(pl.col("step").is_not_null())
        .select("rank", "step", "start_ns", "end_ns")
        .collect()
        .join(offsets.select("rank", "offset_ns"), on="rank", how="left")
        .with_columns(pl.col("start_ns", "end_ns") - pl.col("offset_ns").fill_null(0))
    )
    if bounds.is_empty():
        raise Unavailable("no steps are marked")
    first = bounds["step"].min()
    # Times since the epoch are too large for exact medians.
    begun = bounds.filter(pl.col("step") == first).with_columns(pl.col("start_ns") - pl.col("start_ns").min())
    late = (pl.col("start_ns") - pl.col("start_ns").median()).round().cast(pl.Int64)
    starts = begun.select("rank", "step", start_late_ns=late)
    all_ns = bounds.group_by("rank").agg((pl.col("end_ns") - pl.col("start_ns")).sum(), steps=pl.len())
    typical_ns, count = all_ns.select(pl.col("end_ns", "steps").median()).row(0)
    shared = arrival.filter((pl.col("members") > 1) & ~pl.col("point_to_point")).sort("rank", "start_ns", "end_ns")
    entered = shared.group_by("rank", maintain_order=True).agg(
        in_step=pl.col("step").first(),
        waited_ns=pl.col("lateness_ns").first(),
        calls_last=pl.col("is_last").cast(pl.Int64).cum_prod().sum(),
        calls=pl.len().cast(pl.Int64),
    )
    found = starts.join(entered, on="rank").with_columns(
        waited_ratio=pl.col("waited_ns") / typical_ns, steps=pl.lit(int(count or 0), pl.Int64)
    )
    return found.filter(
        pl.col("in_step") == pl.col("step"),
        pl.col("calls_last") > 0,
        pl.col("waited_ratio") >= limits.waited_ratio,
        pl.col("start_late_ns") >= limits.own_ratio * pl.col("waited_ns"),
    ).select(names(COLUMNS))
