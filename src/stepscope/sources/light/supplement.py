"""What light records have besides their marks: calls between ranks with their place in their step."""

from __future__ import annotations

import polars as pl

from stepscope.recording_format.about import About
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.steps import Steps
from stepscope.sources.kineto.tables import TraceSupplement
from stepscope.sources.recording.marks import Marks
from stepscope.sources.recording.ranks import group_rows
from stepscope.tables.communication import PART, POINT_TO_POINT, WHOLE

_STEP_OF_CALLS = 1_000_000
"""Calls of a group in one step: fewer than this. The place of a call in its group is its step times this, and its place
in the step."""


class LightSupplement(TraceSupplement):
    """What light records have besides events.

    Args:
        about: The rank.
        marks: Its marks.
    """

    def __init__(self, about: About, marks: Marks) -> None:
        super().__init__(group_rows(about))
        self._marks = marks
        self.left_out = 0
        """Calls in a step of which others are missing."""

    def phases(self, steps: Steps, events: Events) -> pl.DataFrame | None:  # noqa: ARG002 - as in the base class
        """From the marks."""
        known = self._marks.phases_of(steps)
        return known if known.height else None

    def calls(self, found: pl.DataFrame, steps: Steps) -> pl.DataFrame:
        """All calls."""
        marks = self._marks.all_calls()
        if not marks.height:
            return found
        rows = marks.drop("is_async").with_columns(
            on_device=pl.lit(False), step=steps.of(marks["start_ns"]), size_of=_size_of()
        )
        placed = _placed(rows, steps)
        self.left_out = rows.height - placed.height
        return pl.concat([found, placed], how="diagonal_relaxed")


def _size_of() -> pl.Expr:
    """What the payload is of: that of one rank, as in the marks of the recorder."""
    operation = pl.col("operation")
    return (
        pl.when(operation.is_in(["all_gather", "gather"]))
        .then(pl.lit(PART))
        .when(operation.is_in(["reduce_scatter", "all_to_all"]))
        .then(pl.lit(WHOLE))
    )


def _placed(calls: pl.DataFrame, steps: Steps) -> pl.DataFrame:
    """Calls with their place in their group (`recorded`), which is the same on all ranks although these were not
    switched on, or have lost their oldest files, at the same call: it is counted in each step anew.

    The calls of a step are left out if some before them may be missing: in the first step with calls, and in the first
    one after steps without, if it has fewer than the next one. So are those in no recorded step, as when steps are
    switched off, unless they are before step 1.
    """
    if not steps.ranges.height:
        return calls
    numbers = steps.ranges["step"]
    before_all = pl.col("start_ns") < int(steps.ranges["start_ns"][0]) if numbers[0] == 1 else pl.lit(False)
    outside = pl.when(before_all).then(0).otherwise(-1)
    known = calls.sort("start_ns").with_columns(step=pl.coalesce("step", outside))
    counts = known.filter(pl.col("step") >= 0).group_by("step").len("calls")
    counted = pl.DataFrame({"step": numbers}).join(counts, on="step", how="left", maintain_order="left")
    calls_in, before, after = (
        pl.col("calls").fill_null(0),
        pl.col("calls").shift(1).fill_null(0),
        pl.col("calls").shift(-1),
    )
    begins = (before == 0) & (pl.col("step") != 1)
    partial = counted.filter(begins & (calls_in < after.fill_null(0)))["step"]
    whole = known.filter(~pl.col("step").is_in(partial.implode()) & (pl.col("step") >= 0))
    between_two = pl.col("operation").is_in(POINT_TO_POINT) & pl.col("group").is_not_null()
    place = pl.int_range(pl.len(), dtype=pl.Int64).over("group", "on_device", between_two.alias("between"), "step")
    return whole.with_columns(recorded=pl.col("step").cast(pl.Int64) * _STEP_OF_CALLS + place)
