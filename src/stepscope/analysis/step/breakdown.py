"""Where the time of each step goes: computing, communication, memory operations, idle."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.step_windows import known_steps, numbered, step_windows
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.activity import WORK, split_lengths
from stepscope.tables import COLLECTIVES
from stepscope.tables.base import Column
from stepscope.tables.steps import WHOLE_RECORDING

SUMS: dict[str, pl.Expr] = {
    "computing_ns": pl.col("computing"),
    "communication_ns": pl.col("communication"),
    "overlapped_ns": pl.col("communication") & pl.col("computing"),
    "communication_not_overlapped_ns": pl.col("communication") & ~pl.col("computing"),
    "memory_ns": pl.col("memory"),
    "memory_not_overlapped_ns": pl.col("memory") & ~pl.col("computing") & ~pl.col("communication"),
    "free_ns": ~(pl.col("computing") | pl.col("communication") | pl.col("memory")),
    "data_loading_ns": pl.col("data"),
}
"""Each sum is the time during which its condition holds; `computing`, `communication_not_overlapped`,
`memory_not_overlapped` and `free` add up to the window."""

COLUMNS = columns(
    "rank step window window_start_ns window_ns computing_ns communication_ns overlapped_ns",
    "communication_not_overlapped_ns memory_ns memory_not_overlapped_ns free_ns",
    "data_loading_ns",
    Column(
        "preparing_ns",
        "int64",
        "From the step's start on the host to its first device task; null without one.",
        title="preparing",
    ),
    Column("stage_ns", "int64", "`window_ns` minus `bubble_ns`."),
    Column("bubble_ns", "int64", "Time in receive calls (pipeline bubbles)."),
    Column(
        "communication_not_overlapped_exclude_receive_ns",
        "int64",
        "`communication_not_overlapped_ns` minus `bubble_ns`, at least 0.",
    ),
    nulls="preparing_ns",
)


@analysis("rank", COLUMNS, together=True)
def breakdown(
    steps: pl.LazyFrame,
    activity: pl.DataFrame,
    collectives: pl.LazyFrame | None,
    whole_recording: bool = False,
) -> pl.DataFrame:
    """Split each step's window by the rank's activity: one row per step, in order.

    `computing + communication_not_overlapped + memory_not_overlapped + free = window`, exactly.

    The columns agree with the step table of the Ascend profiler (`step_trace_time.csv`), except that its `Free`
    contains memory operations: it equals `free_ns + memory_not_overlapped_ns` here. In a CPU-only recording,
    operators inside a data-loading annotation count as loading (`free_ns`), not as computing.

    Args:
        whole_recording: Use one window from the first to the last device task, step 0, instead of steps
            (as HTA's temporal breakdown does).
    """
    received = COLLECTIVES.or_empty(collectives).filter(pl.col("operation") == "recv").group_by("rank", "step")
    bubbles = received.agg(bubble_ns=pl.col("duration_ns").sum()).collect()
    windows = _windows(steps, activity.filter("on_device") if whole_recording else None)
    sums = (
        split_lengths(activity, windows.lazy())
        .group_by("window")
        .agg(pl.col("duration_ns").filter(where).sum().alias(name) for name, where in SUMS.items())
    )
    return (
        windows.join(sums, on="window", how="left")
        .drop("window")
        .rename({"window_kind": "window", "start_ns": "window_start_ns"})
        .join(bubbles, on=["rank", "step"], how="left")
        .with_columns(pl.col([*SUMS, "bubble_ns"]).fill_null(0))
        .with_columns(window_ns=pl.col("end_ns") - pl.col("window_start_ns"))
        .with_columns(
            stage_ns=pl.col("window_ns") - pl.col("bubble_ns"),
            communication_not_overlapped_exclude_receive_ns=(
                pl.col("communication_not_overlapped_ns") - pl.col("bubble_ns")
            ).clip(lower_bound=0),
        )
        .select(names(COLUMNS))
        .sort("rank", "step")
    )


def _windows(steps: pl.LazyFrame, activity: pl.DataFrame | None) -> pl.DataFrame:
    """Numbered windows with their step; one window over the whole recording of each rank in `activity`, if given."""
    windows = step_windows(known_steps(steps))
    if activity is None or activity.is_empty():
        return windows
    work = activity.filter(pl.col("what").is_in(WORK)).group_by("rank")
    whole = work.agg(pl.col("start_ns").min(), pl.col("end_ns").max()).with_columns(
        step=pl.lit(0, pl.Int32), window_kind=pl.lit(WHOLE_RECORDING), preparing_ns=pl.lit(None, pl.Int64)
    )
    kept = windows.drop("window").join(whole, on="rank", how="anti")
    return numbered(pl.concat([kept, whole.select(kept.columns)]))
