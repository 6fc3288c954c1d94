"""The unit of a job's times and savings: a step, an iteration found by repetition, or the whole recording."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import Per
from stepscope.tables.steps import REPETITION, WHOLE_RECORDING

WINDOWS: dict[str, Per] = {WHOLE_RECORDING: "recording", REPETITION: "iteration"}
"""Kinds of windows (`steps.window`) that are not recorded steps."""


@dataclass(frozen=True)
class Unit:
    """The unit of the times of windows.

    Args:
        per: What a window is.
    """

    per: Per = "step"

    def saved(self, mean_ns: float, count: int) -> int:
        """The saving per window, given the mean saving of `count` steps or batches: for a whole recording, their
        sum."""
        return round(mean_ns * (count if self.per == "recording" else 1))


def unit_of(steps: pl.DataFrame | pl.LazyFrame | None, otherwise: Per = "recording") -> Unit:
    """What the windows of a job are: steps if any rank has steps.

    Args:
        steps: A breakdown or the table of steps.
        otherwise: The unit if `steps` is missing.
    """
    if steps is None:
        return Unit(otherwise)
    if "window" not in steps.lazy().collect_schema():
        return Unit()
    kinds = steps.lazy().select(pl.col("window").unique()).collect()["window"]
    found = {WINDOWS.get(kind, "step") for kind in kinds}
    return Unit(next((per for per in ("step", "iteration", "recording") if per in found), "step"))
