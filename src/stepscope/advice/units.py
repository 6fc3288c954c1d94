"""What times and savings of a job are of: a step, an iteration that was found by repetition, or the whole recording."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.advice.base import EACH, Per, ms
from stepscope.tables.steps import REPETITION, WHOLE_RECORDING

WINDOWS: dict[str, Per] = {WHOLE_RECORDING: "recording", REPETITION: "iteration"}
"""Kinds of windows (`steps.window`) that are no recorded steps."""


@dataclass(frozen=True)
class Unit:
    """How to write about times of the windows of a breakdown.

    Args:
        per: What a window is.
    """

    per: Per = "step"

    @property
    def each(self) -> str:
        """Behind a time: `a step`, `an iteration`, `in the recording`."""
        return EACH.get(self.per, f"in the {self.per}")

    def of(self, ns: float) -> str:
        """Behind a part of such a time: `of a 20.0 ms step`, `of the 20.0 ms recording`."""
        return f"of {'the' if self.per == 'recording' else 'a'} {ms(ns)} {self.per}"


def unit_of(breakdown: pl.DataFrame) -> Unit:
    """What the windows of `breakdown` are; a job in which any rank has steps is told by steps."""
    if "window" not in breakdown.columns or breakdown.is_empty():
        return Unit()
    found = {WINDOWS.get(kind, "step") for kind in breakdown["window"].unique()}
    return Unit(next(per for per in ("step", "iteration", "recording") if per in found))
