"""The steps of one recording of several: which they are by the numbers that all of them share."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from stepscope.sources.ascend.exported_rank import ExportedRank
from stepscope.sources.ascend.steps import step_at
from stepscope.sources.ascend.timeline import Kind

_WITH_STEPS: tuple[Kind, ...] = ("compute", "details", "communication")


def numbers_of(
    found: ExportedRank, shift_ns: int, ranges: pl.DataFrame, covered: pl.DataFrame
) -> dict[int, int | None]:
    """Number of a step in the recording -> its number among all steps; unknown ones are missing.

    A device's profiler restarts its numbers in each recording. If it has ranges of steps, their middle gives the
    step; if only its work has numbers, they are matched in order with the covered steps if there are as many.

    Args:
        found: The recording.
        shift_ns: Added to its times.
        ranges: All steps.
        covered: Those of them that the recording covers.
    """
    own = found.steps
    if not ranges.height:
        return {}
    if own.height:
        middle = own.select((pl.col("start_ns") + pl.col("end_ns")) // 2 + shift_ns).to_series()
        return dict(zip(own["step"].to_list(), step_at(middle, ranges, inside=True).to_list(), strict=True))
    stated = _stated(found)
    return dict(zip(stated, covered["step"].to_list(), strict=True)) if len(stated) == covered.height else {}


def _stated(found: ExportedRank) -> list[int]:
    """The steps that work is assigned to."""
    frames = [frame for kind in _WITH_STEPS for frame in found.timeline.frames(kind, "step")]
    numbers = [frame["step"].cast(pl.Int64).drop_nulls().unique() for frame in (*frames, found.calls)]
    every: list[int] = pl.concat(numbers).unique().sort().to_list()
    return every


def renumbered(numbers: Mapping[int, int | None], column: str = "step") -> pl.Expr:
    """`column` by the numbers that all recordings share; null if unknown."""
    kind = pl.Int64 if column == "step_analysed" else pl.Int32
    return pl.col(column).replace_strict(dict(numbers), default=None, return_dtype=kind)
