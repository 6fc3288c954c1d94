"""Steps without recorded operators whose phases are marked, in recordings where other steps have operators.

To save time, a recorder leaves operators out of most steps of some models but marks the phases of all steps. On a CPU,
the phases show what such a step was doing; what a device did remains unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.methods.intervals import END, pieces
from stepscope.analysis.methods.step_windows import known_steps, numbered, step_windows
from stepscope.analysis.registry import analysis
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When marked phases can replace operators that were not recorded."""

    unmarked_ratio: float = limit(
        0.05,
        "of the steps with operators, with operators outside all marks, at most",
        "chosen by us: with more, marks do not show when other steps computed",
    )


LIMITS = Limits()

MARKS = ("phase", "data", "compile", "checkpoint")
"""Kinds of marks inside which operators may run."""


def unrecorded_steps(steps: pl.LazyFrame) -> pl.LazyFrame:
    """The steps on the host without recorded operators, if other steps have them."""
    return steps.filter(~pl.col("recorded") & (pl.col("window") == "host"))


def marked_steps(steps: pl.LazyFrame, activity: pl.DataFrame | None) -> pl.LazyFrame:
    """The `unrecorded_steps` for which `activity` has phases."""
    unrecorded = unrecorded_steps(steps)
    if activity is None:
        return unrecorded.head(0)
    windows = step_windows(unrecorded)
    if windows.is_empty():
        return unrecorded
    inside = _phases_in(windows, activity).select("window").unique()
    known = windows.lazy().join(inside, on="window", how="semi").select("rank", "step").unique()
    return unrecorded.join(known, on=["rank", "step"], how="semi", maintain_order="left")


def phases_of_unrecorded(
    marks: pl.DataFrame, working: pl.DataFrame, steps: pl.LazyFrame, limits: Limits = LIMITS
) -> pl.DataFrame:
    """The marked phases in `unrecorded_steps`, of ranks whose marks contain nearly all operators of the other steps.

    Args:
        marks: Rows of `marks.marks`.
        working: `rank`, `what`, `start_ns`, `end_ns`: the operators of ranks without a device.
        steps: The steps.
        limits: What counts as nearly all.

    Returns:
        The columns of `marks`, clipped to those steps.
    """
    unrecorded = step_windows(unrecorded_steps(steps))
    if unrecorded.is_empty():
        return marks.clear()
    windows = step_windows(known_steps(steps))
    layers = {what: _ranges(marks, what) for what in MARKS}
    cut = pieces({"computing": _ranges(working, "computing"), **layers}, windows.lazy(), by=["rank"])
    apart = pl.col("computing") & ~pl.any_horizontal(MARKS)
    shares = cut.group_by("rank").agg(share=pl.col("duration_ns").filter(apart).sum() / pl.col("duration_ns").sum())
    covered = shares.filter(pl.col("share") <= limits.unmarked_ratio).collect()["rank"].to_list()
    phases = _phases_in(unrecorded.filter(pl.col("rank").is_in(covered)), marks)
    return phases.with_columns(what=pl.lit("phase"), end_ns=END).select(marks.columns).collect()


@analysis("rank", columns("rank step window window_start_ns window_ns by_phases", nulls=""), together=True)
def timed_steps(steps: pl.LazyFrame, activity: pl.DataFrame) -> pl.DataFrame:
    """List the steps whose busy time is known, from what ran or only from marked phases: one row per step, in order."""
    known, marked = step_windows(known_steps(steps)), step_windows(marked_steps(steps, activity))
    rows = pl.concat([known.with_columns(by_phases=False), marked.with_columns(by_phases=True)])
    return rows.sort("rank", "start_ns", "end_ns", "step").select(
        "rank",
        "step",
        window="window_kind",
        window_start_ns="start_ns",
        window_ns=pl.col("end_ns") - pl.col("start_ns"),
        by_phases="by_phases",
    )


def phase_time(timed_steps: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """The total length of the marked phases of each step: `rank`, `step`, `by_phases`, `phase_ns`."""
    end = pl.col("window_start_ns") + pl.col("window_ns")
    windows = numbered(timed_steps.select("rank", "step", "by_phases", start_ns="window_start_ns", end_ns=end))
    sums = _phases_in(windows, marks).group_by("window").agg(phase_ns=pl.col("duration_ns").sum()).collect()
    found = windows.join(sums, on="window", how="left", maintain_order="left")
    return found.select("rank", "step", "by_phases", pl.col("phase_ns").fill_null(0))


def idle_in_phases(idle_pieces: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """Each rank's idle time within marked phases, by step and cause: `rank`, `step`, `cause`, `within_ns`."""
    windows = numbered(idle_pieces.select("rank", "step", "cause", "start_ns", end_ns=END))
    found = _phases_in(windows, marks).collect().join(windows.select("window", "step", "cause"), on="window")
    return found.group_by("rank", "step", "cause").agg(within_ns=pl.col("duration_ns").sum())


def _phases_in(windows: pl.DataFrame, marks: pl.DataFrame) -> pl.LazyFrame:
    """The marked phases, clipped to some windows: `rank`, `window`, `start_ns`, `duration_ns`."""
    return pieces({"phase": _ranges(marks, "phase")}, windows.lazy(), by=["rank"]).filter("phase")


def _ranges(table: pl.DataFrame, what: str) -> pl.LazyFrame:
    return table.lazy().filter(pl.col("what") == what).select("rank", "start_ns", "end_ns")
