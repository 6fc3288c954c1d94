"""The long gaps in a rank's work, and the work before and after each."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.intervals import END
from stepscope.analysis.methods.ordering import in_order
from stepscope.analysis.methods.statistics import first_label
from stepscope.analysis.methods.step_windows import in_steps
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.activity import is_on_device
from stepscope.analysis.step.idle import CAUSE
from stepscope.selection import Choice
from stepscope.tables import COLLECTIVES, KERNELS, OPERATORS
from stepscope.tables.base import Column

LIMIT = 20
"""Longest gaps of a rank that are kept, whatever their length."""

LEAST_RATIO = 0.01
"""Share of the rank's mean step from which all gaps are kept, chosen by us: so at most 100 in a step."""

WHEN = ("before", "in")

PLACES = columns(
    "rank step start_ns duration_ns",
    meaning("cause", "Cause of most of the idle time.", values=CAUSE.values),
    Column("before_name", "string", "Work that ended where the gap begins; null if unknown."),
    Column("next_name", "string", "Work that began where the gap ends; null if unknown."),
    Column("next_stream", "int32", "Stream of that work; null if unknown."),
    Column("launched", "string", "When the host launched it: before the gap or in it.", values=WHEN),
    Column("ahead_ns", "int64", "From the end of its launch to the end of the gap; null if unknown."),
)
"""Columns that answers about gaps share."""

_IDS = (
    Column("next_correlation", "int64", "Id that this work shares with its launch."),
    Column("next_external_id", "int64", "Id that this work shares with its operator."),
)

COLUMNS = columns(
    *PLACES,
    *_IDS,
    nulls="before_name next_name next_stream launched ahead_ns next_correlation next_external_id",
)

_WORK = {"name": pl.String, "stream": pl.Int32, "launch_end_ns": pl.Int64, "correlation": pl.Int64}
_WORK |= {"external_id": pl.Int64}


@analysis("rank", COLUMNS, together=True)
def gap_ends(
    idle_pieces: pl.DataFrame,
    timed_steps: pl.DataFrame,
    activity: pl.DataFrame,
    kernels: pl.LazyFrame | None,
    collectives: pl.LazyFrame | None,
    operators: pl.LazyFrame | None,
    limit: int = LIMIT,
    chosen: Choice = None,
) -> pl.DataFrame:
    """Find the longest gaps of each rank, and all that take a noticeable share of a step: one row per gap, in order.

    A gap lasts from the end of all work (of operators, if the recording is CPU-only) to the next work. Work that begins
    or ends with another's is represented by the longest.

    Args:
        limit: Number of longest gaps of each rank to keep, however short.
        chosen: Only gaps in these steps, e.g. `1-3`.
    """
    gaps = _long(idle_pieces, timed_steps, limit, chosen)
    found = pl.concat(_neighbours(gaps, activity, kernels, collectives, operators))
    before = _longest(found.filter(pl.col("what") == "before"), "end_ns").select(
        "rank", start_ns="end_ns", before_name="name"
    )
    after = _longest(found.filter(pl.col("what") == "next"), "start_ns").select(
        "rank", *(pl.col(name).alias(f"next_{name}") for name in _WORK), end_ns="start_ns"
    )
    launched = pl.col("next_launch_end_ns")
    return (
        gaps.join(before, on=["rank", "start_ns"], how="left")
        .join(after, on=["rank", "end_ns"], how="left")
        .with_columns(
            launched=first_label({"before": launched <= pl.col("start_ns"), "in": launched.is_not_null()}),
            ahead_ns=(pl.col("end_ns") - launched).clip(lower_bound=0),
        )
        .select(names(COLUMNS))
        .sort("rank", "start_ns")
    )


def _long(pieces: pl.DataFrame, timed_steps: pl.DataFrame, limit: int, chosen: Choice) -> pl.DataFrame:
    """The gaps that are kept: `rank`, `step`, `cause`, `start_ns`, `end_ns`, `duration_ns`."""
    breaks = (pl.col("rank") != pl.col("rank").shift(1)) | (pl.col("start_ns") != END.shift(1))
    numbered = in_order(pieces, "rank", "start_ns").with_columns(gap=breaks.fill_null(True).cum_sum())
    gaps = numbered.group_by("gap", maintain_order=True).agg(
        pl.col("rank", "start_ns").first(),
        pl.col("duration_ns").sum(),
        step=pl.col("step").get(pl.col("duration_ns").arg_max()),
    )
    means = timed_steps.group_by("rank").agg(mean_ns=pl.col("window_ns").mean())
    place = pl.col("duration_ns").rank("ordinal", descending=True).over("rank")
    kept = (
        in_steps(gaps, chosen)
        .join(means, on="rank", how="left", maintain_order="left")
        .filter((place <= limit) | (pl.col("duration_ns") >= LEAST_RATIO * pl.col("mean_ns")))
    )
    parts = numbered.join(kept.select("gap"), on="gap", how="semi")
    causes = (
        parts.group_by("gap", "cause").agg(pl.col("duration_ns").sum()).sort("gap", -pl.col("duration_ns"), "cause")
    )
    return (
        kept.join(causes.unique("gap", keep="first", maintain_order=True).select("gap", "cause"), on="gap")
        .select("rank", "step", "cause", "start_ns", "duration_ns", end_ns=END)
        .sort("rank", "start_ns")
    )


def _neighbours(
    gaps: pl.DataFrame,
    activity: pl.DataFrame,
    kernels: pl.LazyFrame | None,
    collectives: pl.LazyFrame | None,
    operators: pl.LazyFrame | None,
) -> Iterator[pl.DataFrame]:
    """Work that ends where a gap begins (`what` is `before`) or begins where one ends (`next`)."""
    on_device = is_on_device(activity)
    calls = COLLECTIVES.or_empty(collectives).filter(pl.col("on_device") & on_device)
    on_host = OPERATORS.or_empty(operators).filter(~on_device)
    tables = (KERNELS.or_empty(kernels), calls, on_host)
    for table in tables:
        schema = table.collect_schema()
        known = [
            (pl.col(name) if name in schema else pl.lit(None)).cast(dtype).alias(name) for name, dtype in _WORK.items()
        ]
        rows = table.select("rank", "start_ns", "duration_ns", *known)
        for batch in batches(near_gaps(rows, gaps)):
            work = batch.with_columns(end_ns=END)
            before = work.join(gaps.select("rank", end_ns="start_ns"), on=["rank", "end_ns"], how="semi")
            after = work.join(gaps.select("rank", start_ns="end_ns"), on=["rank", "start_ns"], how="semi")
            yield before.with_columns(what=pl.lit("before"))
            yield after.with_columns(what=pl.lit("next"))


def near_gaps(rows: pl.LazyFrame, gaps: pl.DataFrame) -> pl.LazyFrame:
    """The rows that may touch a gap: none before the first gap begins or after the last one ends, so that of a table
    of many steps little is read if the gaps are in a few."""
    if gaps.is_empty():
        return rows.clear()
    first, last = gaps["start_ns"].min(), gaps["end_ns"].max()
    return rows.filter(END.ge(first), pl.col("start_ns").le(last))


def _longest(work: pl.DataFrame, at: str) -> pl.DataFrame:
    """Of work at one time, the one whose launch is known and then the longest."""
    ordered = work.sort(
        "rank", at, pl.col("launch_end_ns").is_null(), -pl.col("duration_ns"), "name", "correlation", nulls_last=True
    )
    return ordered.unique(["rank", at], keep="first", maintain_order=True)
