"""Why the device, or the framework in a CPU-only recording, was idle."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.step_windows import known_steps, step_windows
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.activity import KINDS, is_on_device, split
from stepscope.analysis.step.marked_steps import marked_steps
from stepscope.tables.base import Column

CAUSES = (
    "compile",
    "garbage_collection",
    "data_loading",
    "checkpoint",
    "synchronisation",
    "dispatch",
    "dependency",
    "python",
    "other",
    "not_recorded",
)
"""Causes of idle time, in this order: a compiler runs; Python collects garbage; the training loop waits for a batch; a
checkpoint is written; the host waits for the device and launches nothing; the host launches the next kernel too late;
the next kernel was launched in time but waits for another stream, an event or the hardware; Python code outside
operators (CPU); none of these is visible; only the device was recorded, so the cause is unknown."""

SEEN_STEPS = 0.5
"""Share of steps with host operators from which the host counts as recorded, chosen by us: compiled graphs run a few
operators on the host, which do not show what the launching thread does."""


_ORDER = ("rank", "next_ns", "launch_end_ns", "launch_start_ns")
"""Columns of `_launches`, in order."""


PIECES = columns(
    "rank step", meaning("cause", "Cause of the idle time.", values=CAUSES), "start_ns duration_ns", nulls=""
)
"""Pieces of idle time."""


@analysis(
    "rank",
    columns(
        "rank step",
        meaning("cause", "Cause of the idle time.", values=CAUSES),
        Column("idle_ns", "int64", "Idle time with this cause."),
        Column("gaps", "int64", "Number of pieces.", importance=62),
        nulls="",
    ),
    together=True,
)
def idle(idle_pieces: pl.DataFrame) -> pl.DataFrame:
    """Split the free time of each step by its cause.

    Returns:
        One row per cause and step, longest first. Over the causes of a step, `idle_ns` sums to `free_ns` of
        `breakdown`.
    """
    return (
        idle_pieces.group_by("rank", "step", "cause")
        .agg(idle_ns=pl.col("duration_ns").sum(), gaps=pl.len().cast(pl.Int64))
        .sort("rank", "step", "idle_ns", "cause", descending=[False, False, True, False])
    )


@analysis("rank", PIECES, together=True)
def idle_pieces(
    steps: pl.LazyFrame,
    activity: pl.DataFrame,
    kernels: pl.LazyFrame | None,
    operators: pl.LazyFrame | None = None,
    marks: pl.DataFrame | None = None,
    next_work: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Cut the free time of each step into pieces with one cause each.

    Args:
        steps: The steps.
        activity: What the rank was doing when.
        kernels: Device work and the calls that launched it.
        operators: Host operators; like `marks`, they show that the host was recorded.
        marks: What the host did.
        next_work: The work for which the last step of a selection waits.

    Returns:
        One row per piece, in order of time.
    """
    windows = step_windows(known_steps(steps))
    launches = None if kernels is None else _launches(kernels)
    if launches is not None and next_work is not None:
        launches = pl.concat([launches, next_work.lazy()])
    return _pieces(windows, activity, launches, _host_recorded(windows, kernels, operators, marks))


@analysis(
    "rank",
    columns(
        "rank",
        Column("next_ns", "int64", "Start of the task.", moment=True),
        Column("launch_end_ns", "int64", "End of the host call that launched it; null if not recorded.", moment=True),
        Column("launch_start_ns", "int64", "Start of the host call that launched it.", moment=True),
        nulls="launch_end_ns launch_start_ns",
    ),
    together=True,
    every_step=True,
)
def next_work(steps: pl.LazyFrame, kernels: pl.LazyFrame) -> pl.DataFrame:
    """Find the first device task after each step's window, even if its own step is not selected.

    Returns:
        At most one row per step, in order of time.
    """
    ends = steps.select("rank", "window_end_ns").sort("rank", "window_end_ns")
    tasks = _launches(kernels).sort(_ORDER, nulls_last=True)
    found = ends.join_asof(
        tasks, left_on="window_end_ns", right_on="next_ns", by="rank", strategy="forward", check_sortedness=False
    )
    return found.drop_nulls("next_ns").select(*_ORDER).collect()


def _launches(kernels: pl.LazyFrame) -> pl.LazyFrame:
    """Device tasks and the calls that launched them: `rank`, `next_ns`, `launch_start_ns`, `launch_end_ns`.

    Copies are left out: not every source records the call that starts them, and in a gap the device waits for its next
    real work.
    """
    return kernels.filter(pl.col("kind") != "memory").rename({"start_ns": "next_ns"}).select(_ORDER)


@analysis("rank", PIECES, together=True)
def idle_marked(steps: pl.LazyFrame, activity: pl.DataFrame) -> pl.DataFrame:
    """Cut the time outside phases, in steps of which only phases are known, into pieces with one cause each.

    Args:
        steps: The steps.
        activity: What the rank was doing when.

    Returns:
        The columns of `idle_pieces`.
    """
    return _pieces(step_windows(marked_steps(steps, activity)), activity, None, pl.lit(True))


def _pieces(
    windows: pl.DataFrame, activity: pl.DataFrame, launches: pl.LazyFrame | None, host_recorded: pl.Expr
) -> pl.DataFrame:
    """Free time within windows: `rank`, `step`, `cause`, `start_ns`, `duration_ns`."""
    cut = split(activity, windows.lazy(), KINDS)
    free = cut.filter(~(pl.col("computing") | pl.col("communication") | pl.col("memory"))).sort("rank", "start_ns")
    if launches is not None:
        ordered = launches.sort(_ORDER, nulls_last=True)
        free = free.join_asof(
            ordered, left_on="start_ns", right_on="next_ns", by="rank", strategy="forward", check_sortedness=False
        )
    else:
        free = free.with_columns(launch_start_ns=pl.lit(None, pl.Int64), launch_end_ns=pl.lit(None, pl.Int64))
    late = pl.col("launch_end_ns") > pl.col("start_ns")
    cause = (
        pl.when("compile")
        .then(pl.lit("compile"))
        .when("gc")
        .then(pl.lit("garbage_collection"))
        .when("data")
        .then(pl.lit("data_loading"))
        .when("checkpoint")
        .then(pl.lit("checkpoint"))
        .when(pl.col("sync") & is_on_device(activity))
        .then(pl.lit("synchronisation"))
        .when(late)
        .then(pl.lit("dispatch"))
        .when(pl.col("launch_end_ns").is_not_null())
        .then(pl.lit("dependency"))
        .when("python")
        .then(pl.lit("python"))
        .when(is_on_device(activity) & ~host_recorded)
        .then(pl.lit("not_recorded"))
        .otherwise(pl.lit("other"))
    )
    return (
        free.with_columns(cause=cause)
        .join(windows.lazy().select("window", "step"), on="window")
        .select("rank", "step", "cause", "start_ns", "duration_ns")
        .sort("rank", "start_ns")
        .collect()
    )


def unbroken(pieces: pl.DataFrame, *alike: str) -> pl.DataFrame:
    """Join pieces of idle time that directly follow each other.

    Args:
        pieces: Rows of `idle_pieces`.
        *alike: Columns that must be equal in joined pieces.

    Returns:
        `rank`, those columns, `start_ns`, `duration_ns`, in order of time.
    """
    end = pl.col("start_ns") + pl.col("duration_ns")
    breaks = [pl.col("start_ns") != end.shift(1).over("rank")]
    breaks += [pl.col(name) != pl.col(name).shift(1).over("rank") for name in alike]
    return (
        pieces.sort("rank", "start_ns")
        .with_columns(pause=pl.any_horizontal(breaks).fill_null(True).cum_sum())
        .group_by("rank", *alike, "pause", maintain_order=True)
        .agg(pl.col("start_ns").min(), pl.col("duration_ns").sum())
        .drop("pause")
    )


def _host_recorded(
    windows: pl.DataFrame, kernels: pl.LazyFrame | None, operators: pl.LazyFrame | None, marks: pl.DataFrame | None
) -> pl.Expr:
    """Whether a rank's host was recorded: launches, marks, or operators in most steps."""
    found = [] if marks is None else marks["rank"].unique().to_list()
    if kernels is not None:
        launched = kernels.filter(pl.col("launch_end_ns").is_not_null()).select(pl.col("rank").unique())
        found += launched.collect()["rank"].to_list()
    if operators is not None:
        counts = windows.group_by("rank").agg(steps=pl.col("step").n_unique())
        seen = operators.group_by("rank").agg(seen=pl.col("step").drop_nulls().n_unique()).collect()
        most = seen.join(counts, on="rank").filter(pl.col("seen") >= SEEN_STEPS * pl.col("steps"))
        found += most["rank"].to_list()
    return pl.col("rank").is_in(sorted({*found}))
