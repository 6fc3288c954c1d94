"""What times and savings of a job are of: a step, an iteration that was found by repetition, or the whole recording."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import Per
from stepscope.tables.steps import REPETITION, WHOLE_RECORDING

WINDOWS: dict[str, Per] = {WHOLE_RECORDING: "recording", REPETITION: "iteration"}
"""Kinds of windows (`steps.window`) that are no recorded steps."""

INSTEAD: Mapping[Per, Sequence[tuple[str, str]]] = {
    "iteration": (
        (r"\ba step\b", "an iteration"),
        (r"\bstep(s?)\b", r"iteration\1"),
        (r"\bStep(s?)\b", r"Iteration\1"),
    ),
    "recording": (
        (r"(,| and) (?:all )?steps?(?: \d+)?\b", ""),
        (r"\bby step\b", "in the recording"),
        (r"\bstep time\b", "time"),
        (r"\b(?:a|the) steps?\b", "the recording"),
        (r"\bSteps\b", "Recording"),
    ),
}
"""What headings and titles about steps become, in order; a recording is one, so nothing is counted in it."""


@dataclass(frozen=True)
class Unit:
    """What times of the windows of a breakdown are of.

    Args:
        per: What a window is.
    """

    per: Per = "step"

    @property
    def counts(self) -> Sequence[str]:
        """Columns that mean nothing there: the whole recording is no step with a number."""
        return ("step", "steps", "steps_late") if self.per == "recording" else ()

    def words(self, text: str) -> str:
        """A heading or title about steps, in words for what they are.

        Examples:
            >>> Unit("iteration").words("Operations of a step"), Unit("recording").words("Steps by phase")
            ('Operations of an iteration', 'Recording by phase')
        """
        for pattern, instead in INSTEAD.get(self.per, ()):
            text = re.sub(pattern, instead, text)
        return text

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
