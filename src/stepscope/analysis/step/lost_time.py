"""What each cause of idle time costs over the whole recording, and in which steps."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.intervals import END, outside
from stepscope.analysis.methods.recurrence import Limits as Regularity
from stepscope.analysis.methods.recurrence import period
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.methods.sudden import MARKED
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.idle import unbroken
from stepscope.analysis.step.marked_steps import idle_in_phases, phase_time
from stepscope.analysis.step.processor_waits import waited
from stepscope.limits import limit
from stepscope.tables.base import Column

STEP_COSTS = ("rank", "cause", "step", "lost_ns", "judged_ns", "paused_ns", "step_ns")
"""Input of `summed`: for each step and cause the cost, the part known for all steps alike, the part in pauses, and the
step's length."""


UNSEEN = ("data_loading", "python", "dispatch", "other")
"""Causes of idle time in which a thread may as well have waited for a processor; the others are what it did itself."""


@dataclass(frozen=True)
class Limits(Regularity):
    """When a step counts as stalled and idle time as a pause (all limits of each must be exceeded), and when stalls
    recur."""

    ordinary_factor: float = limit(2.0, "times the rank's lower quartile", "chosen by us: beyond ordinary variation")
    excess_ratio: float = limit(
        0.05, "of the mean step, beyond that quartile", "chosen by us: smaller losses are not worth a finding"
    )
    pause_ns: int = limit(
        5_000_000, "ns without a break", "measured: Python between operators of small models takes less"
    )
    pause_ratio: float = limit(0.1, "of the mean step, without a break", "chosen by us: twice `excess_ratio`")
    least_ratio: float = limit(
        0.25, "of the most expensive step's excess, unless its cause is marked", "chosen by us: less has another cause"
    )


COLUMNS = columns(
    "rank cause",
    meaning("steps", "Number of steps counted."),
    Column("lost_ns", "int64", "Idle time with this cause over these steps."),
    meaning("recorded_ns", "Length of these steps."),
    Column("lost_ratio", "float64", "`lost_ns` divided by `recorded_ns`."),
    Column("paused_ns", "int64", "Part of `lost_ns` in pauses: long uninterrupted pieces."),
    Column("paused_ratio", "float64", "`paused_ns` divided by `recorded_ns`."),
    meaning("mean_ns", "Mean idle time with this cause per step."),
    meaning("median_ns", "Median idle time with this cause per step."),
    Column("stalled_steps", "list[int32]", "Steps in which it costs far more than usual."),
    Column("stalled_ns", "int64", "Its cost in these steps above the lower quartile of all steps."),
    Column("stalled_ratio", "float64", "`stalled_ns` divided by `recorded_ns`."),
    Column("period", "int64", "Steps between recurrences of the cost; null if irregular."),
    nulls="period",
)


@analysis("rank", COLUMNS, together=True)
def lost_time(
    idle_pieces: pl.DataFrame,
    idle_marked: pl.DataFrame,
    timed_steps: pl.DataFrame,
    outer_steps: pl.DataFrame,
    marks: pl.DataFrame | None,
    single_pauses: pl.DataFrame,
    processor_waits: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Sum what each cause of idle time costs, and find the steps that stall: one row per cause, greatest loss first.

    In steps of which only phases are marked, the idle time outside phases is known (`idle_marked`); within phases, the
    idle share is assumed to be that of the steps with operators. Stalled steps are judged by what is known of all
    steps. Pauses that occur once in recordings without steps (`single_pauses`) do not count as lost. Nor does what the
    training thread waits for a processor (`processor_waits`) while nothing that was recorded explains the idle time:
    all of it where a step or a pause is judged, as it may have waited there.
    """
    once = single_pauses.group_by("rank").agg(once_ns=pl.col("duration_ns").sum())
    steps = (
        _whole_steps(timed_steps, outer_steps)
        .join(once, on="rank", how="left", maintain_order="left")
        .select("rank", "step", "by_phases", step_ns=pl.col("window_ns") - pl.col("once_ns").fill_null(0))
    )
    pieces = outside(pl.concat([idle_pieces, idle_marked]), single_pauses.with_columns(end_ns=END))
    causes = pieces.select("rank", "cause").unique(maintain_order=True)
    rows = steps.join(causes, on="rank", maintain_order="left")
    lost = _by_step(pieces, steps, limits)
    found = rows.join(lost, on=["rank", "step", "cause"], how="left", maintain_order="left")
    found = found.with_columns(pl.col("lost_ns", "paused_ns").fill_null(0)).with_columns(judged_ns="lost_ns")
    if marks is not None and timed_steps["by_phases"].any():
        found = _with_phases(found, idle_pieces, timed_steps, marks)
    return summed(_without_waits(found, processor_waits).select(STEP_COSTS), limits)


def _without_waits(rows: pl.DataFrame, processor_waits: pl.DataFrame | None) -> pl.DataFrame:
    """Rows without what the thread of their steps waited for a processor, where it may have done so unseen.

    Where it waited is unknown: what a step has more than the rank's lower quartile is put down to waiting first, and of
    the rest its share of the step.
    """
    if processor_waits is None:
        return rows
    delay, lost = waited(rows, processor_waits), pl.col("lost_ns")
    share = pl.when(pl.col("step_ns") > 0).then(lost / pl.col("step_ns")).otherwise(0.0).clip(upper_bound=1.0)
    excess = lost - lost.quantile(0.25, "lower").over("rank", "cause")
    waits = pl.max_horizontal(rounded(delay * share), pl.min_horizontal(excess, delay)).clip(0, lost)
    less = {
        "lost_ns": lost - waits,
        "judged_ns": (pl.col("judged_ns") - delay).clip(lower_bound=0),
        "paused_ns": (pl.col("paused_ns") - delay).clip(lower_bound=0),
    }
    unseen = pl.col("cause").is_in(UNSEEN)
    return rows.with_columns(pl.when(unseen).then(value).otherwise(name).alias(name) for name, value in less.items())


def _with_phases(
    rows: pl.DataFrame, idle_pieces: pl.DataFrame, timed_steps: pl.DataFrame, marks: pl.DataFrame
) -> pl.DataFrame:
    """Rows of ranks with marked steps, for which the loss within phases is known only in steps with operators.

    Steps with phases only are assumed to lose the same share of them. Each step is judged by its loss outside phases.
    """
    phases = phase_time(timed_steps, marks)
    mixed = phases.filter("by_phases")["rank"].unique().to_list()
    recorded = phases.filter(~pl.col("by_phases")).group_by("rank").agg(recorded_ns=pl.col("phase_ns").sum())
    within = idle_in_phases(idle_pieces.filter(pl.col("rank").is_in(mixed)), marks)
    rates = (
        within.group_by("rank", "cause")
        .agg(pl.col("within_ns").sum())
        .join(recorded.filter(pl.col("recorded_ns") > 0), on="rank")
        .select("rank", "cause", rate=pl.col("within_ns") / pl.col("recorded_ns"))
    )
    assumed = pl.when("by_phases").then(rounded(pl.col("rate") * pl.col("phase_ns"))).fill_null(0)
    return (
        rows.join(phases.drop("by_phases"), on=["rank", "step"], how="left", maintain_order="left")
        .join(rates, on=["rank", "cause"], how="left", maintain_order="left")
        .join(within, on=["rank", "step", "cause"], how="left", maintain_order="left")
        .with_columns(
            lost_ns=pl.col("lost_ns") + assumed,
            judged_ns=pl.col("lost_ns") - pl.col("within_ns").fill_null(0),
        )
    )


def _by_step(pieces: pl.DataFrame, steps: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """The cost of each cause in each step, and the part in pauses (joined pieces of one cause)."""
    keys = ["rank", "step", "cause"]
    means = steps.group_by("rank").agg(mean_ns=pl.col("step_ns").mean())
    is_long = pl.col("duration_ns") >= pl.max_horizontal(limits.pause_ns, limits.pause_ratio * pl.col("mean_ns"))
    return (
        unbroken(pieces, "step", "cause")
        .join(means, on="rank", how="left")
        .group_by(keys)
        .agg(lost_ns=pl.col("duration_ns").sum(), paused_ns=pl.col("duration_ns").filter(is_long).sum())
    )


def _whole_steps(timed_steps: pl.DataFrame, outer_steps: pl.DataFrame) -> pl.DataFrame:
    """The steps in order, without a recording's first and last if these differ from the others.

    The first step is start-up, and no batch can be ready for it. The last one, if windows are the device's, ends with
    the device's work and so lacks the wait before the next step.
    """
    start = pl.col("window_start_ns")
    rows = timed_steps.sort("rank", "window_start_ns").join(outer_steps, on="rank", how="left", maintain_order="left")
    left = pl.len().over("rank") > 1
    later = rows.filter(~left | (start > pl.col("first_ns")))
    cut = (pl.col("window") == "device") & (start == pl.col("last_ns"))
    return later.filter(~left | ~cut)


def summed(rows: pl.DataFrame, limits: Limits = Limits()) -> pl.DataFrame:
    """Summarise costs over steps, as `lost_time` does: one row per rank and cause, greatest loss first.

    Args:
        rows: `STEP_COSTS`, in order of time; 0 for a step without a cost.
        limits: When a step counts as stalled.
    """
    keys, lost, judged = ["rank", "cause"], pl.col("lost_ns"), pl.col("judged_ns")
    ordinary = judged.quantile(0.25, "lower").over(keys)
    excess = judged - ordinary
    stalled = (
        (judged > ordinary * limits.ordinary_factor)
        & (excess > limits.excess_ratio * pl.col("step_ns").mean().over(keys))
        & ((excess >= limits.least_ratio * excess.max().over(keys)) | pl.col("cause").is_in(MARKED))
    )
    marked = rows.with_columns(excess_ns=pl.when(stalled).then(excess).otherwise(0).cast(pl.Int64))
    found = marked.group_by(keys, maintain_order=True).agg(
        steps=pl.len().cast(pl.Int64),
        lost_ns=lost.sum(),
        paused_ns=pl.col("paused_ns").sum(),
        recorded_ns=pl.col("step_ns").sum(),
        mean_ns=rounded(lost.mean()),
        median_ns=rounded(lost.median()),
        stalled_steps=pl.col("step").filter(pl.col("excess_ns") > 0),
        stalled_ns=pl.col("excess_ns").sum(),
        excess=pl.col("excess_ns"),
        numbers=pl.col("step"),
    )
    periods = [period(steps, costs, limits) for steps, costs in found.select("numbers", "excess").iter_rows()]
    shares = {f"{name}_ratio": _share(f"{name}_ns") for name in ("lost", "paused", "stalled")}
    found = found.with_columns(**shares, period=pl.Series(periods, dtype=pl.Int64))
    return found.select(names(COLUMNS)).sort("rank", -pl.col("lost_ns"), "cause")


def _share(column: str) -> pl.Expr:
    return pl.when(pl.col("recorded_ns") > 0).then(pl.col(column) / pl.col("recorded_ns")).otherwise(0.0)
