"""The unit of a job's times and savings: a step, an iteration found by repetition, or the whole recording."""

from __future__ import annotations

import polars as pl

from stepscope.advice.finding import Per
from stepscope.tables.steps import REPETITION, WHOLE_RECORDING

WINDOWS: dict[str, Per] = {WHOLE_RECORDING: "recording", REPETITION: "iteration"}
"""Kinds of windows (`steps.window`) that are not recorded steps."""

KINDS: tuple[Per, ...] = ("step", "iteration", "recording")
"""What windows can be; if a job has several, it is the first of these."""


def per_of(steps: pl.DataFrame | pl.LazyFrame | None, otherwise: Per = "recording") -> Per:
    """What the windows of a job are: steps if any rank has steps.

    Args:
        steps: A breakdown or the table of steps.
        otherwise: The answer if `steps` is missing.
    """
    if steps is None:
        return otherwise
    if "window" not in steps.lazy().collect_schema():
        return "step"
    kinds = steps.lazy().select(pl.col("window").unique()).collect()["window"]
    found = {WINDOWS.get(kind, "step") for kind in kinds}
    return next((per for per in KINDS if per in found), "step")


def saved(per: Per, mean_ns: float, count: int) -> int:
    """The saving per window, given the mean saving of `count` steps or batches: for a whole recording, their sum."""
    return round(mean_ns * (count if per == "recording" else 1))
