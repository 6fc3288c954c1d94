"""What times and savings of a job are of: a step, an iteration that was found by repetition, or the whole recording."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import Per
from stepscope.tables.steps import REPETITION, WHOLE_RECORDING

WINDOWS: dict[str, Per] = {WHOLE_RECORDING: "recording", REPETITION: "iteration"}
"""Kinds of windows (`steps.window`) that are no recorded steps."""


@dataclass(frozen=True)
class Unit:
    """What times of the windows of a breakdown are of.

    Args:
        per: What a window is.
    """

    per: Per = "step"

    def saved(self, mean_ns: float, count: int) -> int:
        """What is saved of each window, if that is the mean of `count` steps or batches: of a recording, their sum."""
        return round(mean_ns * (count if self.per == "recording" else 1))


def unit_of(steps: pl.DataFrame | pl.LazyFrame | None, otherwise: Per = "recording") -> Unit:
    """What the windows of a job are; a job in which any rank has steps is described by steps.

    Args:
        steps: A breakdown, or the table of steps.
        otherwise: What costs are of without it.
    """
    if steps is None:
        return Unit(otherwise)
    if "window" not in steps.lazy().collect_schema():
        return Unit()
    kinds = steps.lazy().select(pl.col("window").unique()).collect()["window"]
    found = {WINDOWS.get(kind, "step") for kind in kinds}
    return Unit(next((per for per in ("step", "iteration", "recording") if per in found), "step"))
