"""Why the device, or the framework in a CPU-only recording, was idle; and long pauses that occur once."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.intervals import END
from stepscope.analysis.methods.light_marks import mostly_unmarked
from stepscope.analysis.methods.ordering import in_order
from stepscope.analysis.methods.statistics import first_label
from stepscope.analysis.methods.step_windows import is_whole_recording, known_steps, step_windows
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.analysis.step.activity import KINDS, is_on_device, split
from stepscope.analysis.step.marked_steps import marked_steps
from stepscope.limits import limit
from stepscope.tables import KERNELS
from stepscope.tables.base import Column, schema_of

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
    UNMARKED := "unmarked",
    "not_recorded",
)
"""Causes of idle time, in this order: a compiler runs; Python collects garbage; the training loop waits for a batch; a
checkpoint is written; the host waits for the device instead of launching the next kernel; the host launches the next
kernel too late; it was launched in time but waits for another stream, an event or the hardware; Python code outside
operators (CPU); none of these is visible; the same where light tracing alone recorded the rank, so that this may be
backward passes, optimizers or idle time; only the device was recorded, so the cause is unknown."""

SEEN_STEPS = 0.5
"""Share of steps with host operators from which the host counts as recorded, chosen by us: compiled graphs run a few
operators on the host, which do not show what the launching thread does."""


ACTIVITY_AT_ONCE = 500_000
"""Ranges of activity that are split at a time, about."""

CAUSE = meaning("cause", "Cause of the idle time.", values=CAUSES)

PIECES = columns("rank step", CAUSE, "start_ns duration_ns", nulls="")
"""Pieces of idle time."""


@analysis(
    "rank",
    columns(
        "rank step",
        CAUSE,
        Column("idle_ns", "int64", "Idle time with this cause."),
        Column("gaps", "int64", "Number of pieces.", importance=62),
        nulls="",
    ),
    together=True,
)
def idle(idle_pieces: pl.DataFrame) -> pl.DataFrame:
    """Split the idle time of each step by its cause: one row per cause and step, longest first.

    Over the causes of a step, `idle_ns` sums to `free_ns` of `breakdown`.
    """
    return (
        idle_pieces.group_by("rank", "step", "cause")
        .agg(idle_ns=pl.col("duration_ns").sum(), gaps=pl.len().cast(pl.Int64))
        .sort("rank", "step", -pl.col("idle_ns"), "cause")
    )


@analysis("rank", PIECES, together=True, across_steps=True)
def idle_pieces(
    steps: pl.LazyFrame,
    activity: pl.DataFrame,
    kernels: pl.LazyFrame | None,
    operators: pl.LazyFrame | None = None,
    marks: pl.DataFrame | None = None,
    slices: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Cut the idle time of each step into pieces with one cause each: one row per piece, in order of time.

    `operators` and `marks` show that the host was recorded, `slices` whether light tracing alone recorded a rank.
    """
    windows = step_windows(known_steps(steps))
    pieces = _pieces(windows, activity, kernels, _host_recorded(windows, kernels, operators, marks))
    if kernels is not None or operators is not None:
        return pieces
    light = pl.col("rank").is_in(mostly_unmarked(ranks_of(steps), slices)) & (pl.col("cause") == "other")
    return pieces.with_columns(cause=pl.when(light).then(pl.lit(UNMARKED)).otherwise("cause"))


@analysis("rank", PIECES, together=True)
def idle_marked(steps: pl.LazyFrame, activity: pl.DataFrame) -> pl.DataFrame:
    """Cut the time outside phases, in steps of which only phases are known, into pieces as `idle_pieces` does."""
    return _pieces(step_windows(marked_steps(steps, activity)), activity, None, pl.lit(True))


def _pieces(
    windows: pl.DataFrame, activity: pl.DataFrame, kernels: pl.LazyFrame | None, host_recorded: pl.Expr
) -> pl.DataFrame:
    """Free time within windows: `rank`, `step`, `cause`, `start_ns`, `duration_ns`."""
    if windows.is_empty():
        return pl.DataFrame(schema=schema_of(PIECES))
    free = _free(windows, activity).join_asof(
        _tasks(kernels), on="start_ns", by="rank", strategy="forward", check_sortedness=False
    )
    launched = pl.col("launch_end_ns") <= pl.col("start_ns")
    cause = first_label(
        {
            "compile": "compile",
            "garbage_collection": "gc",
            "data_loading": "data",
            "checkpoint": "checkpoint",
            "synchronisation": pl.col("sync") & is_on_device(activity) & ~launched.fill_null(value=False),
            "dispatch": pl.col("launch_end_ns") > pl.col("start_ns"),
            "dependency": pl.col("launch_end_ns").is_not_null(),
            "python": "python",
            "not_recorded": is_on_device(activity) & ~host_recorded,
        },
        otherwise="other",
    )
    step = windows["step"].gather(free["window"])
    return free.select("rank", step, cause.alias("cause"), "start_ns", "duration_ns")


def _free(windows: pl.DataFrame, activity: pl.DataFrame) -> pl.DataFrame:
    """The pieces of windows in which nothing works, as `split` makes them; of some windows at a time, as most pieces
    are of no use here."""
    busy = pl.col("computing") | pl.col("communication") | pl.col("memory")
    at_once = max(windows.height * ACTIVITY_AT_ONCE // max(activity.height, 1), 1)
    parts = []
    for some in windows.iter_slices(at_once):
        overlaps = (pl.col("end_ns") > some["start_ns"].min()) & (pl.col("start_ns") < some["end_ns"].max())
        near = activity if some.height == windows.height else activity.filter(overlaps)
        parts.append(split(near, some.lazy(), KINDS).filter(~busy).collect(engine="in-memory"))
    return pl.concat(parts)


def _tasks(kernels: pl.LazyFrame | None) -> pl.DataFrame:
    """When device work began and its launch was over, in order of time; of work that began together, the first launch.

    Copies are left out: not every source records the call that starts them, and in a gap the device waits for its next
    real work.
    """
    tasks = KERNELS.or_empty(kernels).filter(pl.col("kind") != "memory").select("rank", "start_ns", "launch_end_ns")
    ordered = in_order(tasks.collect(engine="streaming"), "rank", "start_ns")
    same = (pl.col("start_ns") == pl.col("start_ns").shift(1)) & (pl.col("rank") == pl.col("rank").shift(1))
    if not ordered.select(same.any()).item():
        return ordered
    return ordered.group_by("rank", "start_ns", maintain_order=True).agg(pl.col("launch_end_ns").min())


def unbroken(pieces: pl.DataFrame, *alike: str) -> pl.DataFrame:
    """Join pieces of idle time (`idle_pieces`) that directly follow each other and are equal in some columns.

    Returns:
        `rank`, those columns, `start_ns`, `duration_ns`, in order of time.
    """
    breaks = [pl.col(name) != pl.col(name).shift(1) for name in ("rank", *alike)]
    breaks.append(pl.col("start_ns") != END.shift(1))
    return (
        in_order(pieces, "rank", "start_ns")
        .with_columns(pause=pl.any_horizontal(breaks).fill_null(True).cum_sum())
        .group_by("pause", maintain_order=True)
        .agg(pl.col("rank", *alike, "start_ns").first(), pl.col("duration_ns").sum())
        .drop("pause")
    )


def _host_recorded(
    windows: pl.DataFrame, kernels: pl.LazyFrame | None, operators: pl.LazyFrame | None, marks: pl.DataFrame | None
) -> pl.Expr:
    """Whether a rank's host was recorded: launches, marks, or operators in most steps."""
    found = [] if marks is None else marks["rank"].unique().to_list()
    found += ranks_of(KERNELS.or_empty(kernels).filter(pl.col("launch_end_ns").is_not_null()))
    if operators is not None and not {*windows["rank"].unique()}.issubset(found):
        counts = windows.group_by("rank").agg(steps=pl.col("step").n_unique())
        seen = operators.group_by("rank").agg(seen=pl.col("step").drop_nulls().n_unique()).collect()
        most = seen.join(counts, on="rank").filter(pl.col("seen") >= SEEN_STEPS * pl.col("steps"))
        found += most["rank"].to_list()
    return pl.col("rank").is_in(sorted({*found}))


@dataclass(frozen=True)
class Limits:
    """When a pause counts as occurring once: both limits must be reached."""

    recorded_ratio: float = limit(
        0.2, "of the recording without longer pauses", "chosen by us: shorter pauses may recur"
    )
    next_factor: float = limit(
        2.0, "times the next shorter pause", "chosen by us: pauses in steps are of similar length"
    )


@analysis("rank", columns("rank start_ns duration_ns recorded_ns", nulls=""), together=True)
def single_pauses(idle_pieces: pl.DataFrame, breakdown: pl.DataFrame, limits: Limits = Limits()) -> pl.DataFrame:
    """Find pauses that are far longer than all others; recordings with marked steps have none.

    Returns:
        One row per pause, longest first.
    """
    whole = breakdown.filter(is_whole_recording()).select("rank", recorded_ns="window_ns")
    pieces = idle_pieces.filter(pl.col("rank").is_in(whole["rank"].implode()))
    gaps = unbroken(pieces).join(whole, on="rank").sort("rank", -pl.col("duration_ns"), "start_ns")
    longer = pl.col("duration_ns").cum_sum().over("rank") - pl.col("duration_ns")
    shorter = pl.col("duration_ns").shift(-1, fill_value=0).over("rank")
    is_long = pl.col("duration_ns") >= limits.recorded_ratio * (pl.col("recorded_ns") - longer)
    stands_out = is_long & (pl.col("duration_ns") >= limits.next_factor * shorter)
    return gaps.filter(stands_out.cast(pl.Int8).cum_min().over("rank") == 1)
