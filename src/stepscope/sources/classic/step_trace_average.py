"""What a step trace has besides its points: lengths of phases, and an average with a definition of each generation.

Neither is kept. Up to 1.x the average is over all steps but the first, later over all.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.classic.average_rows import is_mean_row

TICK_NS = 10
ROUNDING_NS = 2 * TICK_NS
_POINTS = {
    "total": ("start_ns", "end_ns"),
    "iteration_interval": ("start_ns", "forward_start_ns"),
    "fp_and_bp": ("forward_start_ns", "backward_end_ns"),
    "fp": ("forward_start_ns", "end_ns"),
    "tail": ("backward_end_ns", "end_ns"),
}
"""Recorded length to its first and last point."""


def check_phases(path: Path, steps: pl.DataFrame, sink: Sink) -> None:
    """Note stated lengths that differ from what the points give.

    Args:
        path: The file.
        steps: Its steps, with points and recorded lengths if it has them.
        sink: Told about it.
    """
    for name, length in _lengths(steps).items():
        differing = steps.filter((pl.col(name) - length).abs() > ROUNDING_NS).height
        if differing:
            problem = f"{name} of {differing} of {steps.height} steps does not match their points, which are used"
            sink.issue("note", path, problem, "Nothing to do.")


def check_average(path: Path, steps: pl.DataFrame, average: pl.DataFrame, sink: Sink) -> None:
    """Report an average that is neither over all steps nor over all but the first.

    Args:
        path: The file.
        steps: Its steps, in order.
        average: The row that is the average.
        sink: Told about it.
    """
    if steps.height < 2:
        return
    lengths = _lengths(steps)
    if not lengths:
        return
    stated = average.select(list(lengths)).row(0)
    means = [rows.select(**lengths).mean().row(0) for rows in (steps, steps.slice(1))]
    if any(stated) and not any(is_mean_row(stated, mean, ROUNDING_NS) for mean in means):
        problem = "its average row does not match the steps in the file, with or without the first; it is not used"
        sink.issue("note", path, problem, "Nothing to do unless steps are missing from the file.")


def _lengths(steps: pl.DataFrame) -> dict[str, pl.Expr]:
    """Recorded length to the length between its points, if the file has both."""
    there = set(steps.columns)
    return {
        name: pl.col(last) - pl.col(first)
        for name, (first, last) in _POINTS.items()
        if {name, first, last} <= there and steps[name].count()
    }
