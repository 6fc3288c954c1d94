"""What each step, each rank's mean step and the job's mean step consist of, one row per part."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.job.segments import own_calls
from stepscope.analysis.methods.statistics import first_label, rounded, share_of
from stepscope.analysis.methods.step_windows import known_steps, step_windows
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.analysis.step.activity import is_on_device, split_lengths
from stepscope.analysis.step.idle import CAUSES
from stepscope.tables.base import Column

BUSY = ("computing", "wait", "transmit", "communication", "memory")
"""Parts in which the rank works or communicates; of `communication`, the waiting part is unknown."""

PARTS = (*BUSY, *CAUSES)
"""All parts in the order in which figures stack them: work, then idle time by cause."""

PART = Column(
    "part",
    "string",
    "What the time goes to: `computing`; exposed communication as `wait` for other ranks, `transmit`, or if that is "
    "unknown `communication`; exposed `memory` operations; else a cause of idle time (see `idle`).",
    values=PARTS,
)


@analysis("rank", columns("rank step", PART, Column("length_ns", "int64", "Its time."), nulls=""), together=True)
def step_parts(
    steps: pl.LazyFrame, activity: pl.DataFrame, idle: pl.DataFrame, arrival: pl.DataFrame | None
) -> pl.DataFrame:
    """Split each step's window into parts that add up to it: those of `breakdown`, with exposed communication split by
    the waits of `arrival`, and idle time by its causes (`idle`)."""
    calls = own_calls(arrival, ranks_of(steps))
    windows = step_windows(known_steps(steps))
    spans = calls.lazy()
    waiting = spans.filter(pl.col("wait_ns") > 0)
    cut = split_lengths(
        activity,
        windows.lazy(),
        wait=waiting.select("rank", "start_ns", end_ns=pl.col("start_ns") + pl.col("wait_ns")),
        unsplit=spans.filter(pl.col("wait_ns").is_null()).select("rank", "start_ns", "end_ns"),
        called=spans.select("rank", "start_ns", "end_ns"),
    )
    split = pl.col("rank").is_in(calls.filter(pl.col("wait_ns").is_not_null())["rank"].unique().to_list())
    unknown = pl.col("unsplit") | ~split | (~pl.col("called") & is_on_device(activity))
    part = first_label(
        {
            "computing": "computing",
            "wait": pl.col("communication") & pl.col("wait"),
            "communication": pl.col("communication") & unknown,
            "transmit": "communication",
            "memory": "memory",
        },
        otherwise="free",
    )
    busy = (
        cut.with_columns(part=part)
        .filter(pl.col("part") != "free")
        .group_by("window", "part")
        .agg(length_ns=pl.col("duration_ns").sum())
        .join(windows.select("window", "rank", "step"), on="window")
        .select("rank", "step", "part", "length_ns")
    )
    free = idle.select("rank", "step", part="cause", length_ns="idle_ns")
    found = pl.concat([busy, free]).filter(pl.col("length_ns") > 0)
    return found.sort("rank", "step", _place())


@analysis(
    "rank",
    columns(
        "rank",
        PART,
        Column("mean_ns", "int64", "Its mean time in a step."),
        Column("share_ratio", "float64", "Share of the rank's mean step.", title="share"),
        meaning("steps", "Number of steps averaged."),
        nulls="",
    ),
    together=True,
)
def time_parts(step_parts: pl.DataFrame, time_by_rank: pl.DataFrame) -> pl.DataFrame:
    """Average `step_parts` over the steps that `time_by_rank` averages."""
    known = time_by_rank.select("rank", "steps", "left_out_step")
    rows = step_parts.join(known, on="rank").filter(pl.col("step").ne_missing(pl.col("left_out_step")))
    mean = rounded(pl.col("length_ns").sum() / pl.col("steps").first())
    means = rows.group_by("rank", "part").agg(mean_ns=mean, steps=pl.col("steps").first())
    shared = means.sort("rank", _place()).with_columns(share_ratio=share_of(pl.col("mean_ns"), "rank"))
    return shared.select("rank", "part", "mean_ns", "share_ratio", "steps")


_JOB = columns(
    PART,
    Column("mean_ns", "int64", "Its mean time in a step, over all steps of all ranks."),
    Column("share_ratio", "float64", "Share of the mean step.", title="share"),
    Column("ranks", "int64", "Ranks that have it."),
    Column("max_rank", "int32", "Rank with most of it; of several, the lowest."),
    Column("max_ns", "int64", "How much that is."),
    nulls="",
)


@analysis("job", _JOB)
def job_parts(time_parts: pl.DataFrame) -> pl.DataFrame:
    """Average `time_parts` over all steps of all ranks; a rank without a part has 0 of it."""
    steps = time_parts.unique("rank")["steps"].sum()
    ordered = time_parts.sort(-pl.col("mean_ns"), "rank")
    means = ordered.group_by("part", maintain_order=True).agg(
        ranks=pl.len().cast(pl.Int64),
        max_rank=pl.col("rank").first(),
        max_ns=pl.col("mean_ns").first(),
        mean_ns=rounded((pl.col("mean_ns") * pl.col("steps")).sum() / max(steps, 1)),
    )
    total = pl.col("mean_ns").sum()
    shares = pl.when(total > 0).then(pl.col("mean_ns") / total).otherwise(0.0)
    return means.with_columns(share_ratio=shares).sort(_place()).select(names(_JOB))


def _place() -> pl.Expr:
    """Order of the parts."""
    return pl.col("part").replace_strict(list(PARTS), range(len(PARTS)), return_dtype=pl.Int32)
