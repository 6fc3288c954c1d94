"""Which row of a table of steps is their average: told by what it is, for it is marked in many ways.

It is the first or the last row. MindSpore calls it `-`, or 0, with points that are 0 or the means of the others'; of a
profile of one step it may be a copy of that step, or all zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

_NUMBER = r"^\s*\d{1,9}(?:\.0*)?\s*$"
_MARKS = ("-", "--", "avg", "average", "mean")


def step_numbers(step: pl.Expr) -> pl.Expr:
    """The numbers of steps that stand as text (`3`, `3.0`); null for any other mark."""
    return (
        pl.when(step.str.contains(_NUMBER)).then(step.str.strip_chars().cast(pl.Float64, strict=False)).cast(pl.Int32)
    )


def find_average(rows: pl.DataFrame, points: tuple[str, str], rounding: int) -> int | None:
    """The place of the average; None if there is none.

    Args:
        rows: The rows as the file has them: `step` as text, and the points.
        points: Columns of start and end.
        rounding: How far a rounded mean may be off.
    """
    if rows.height < 2:
        return None
    numbers = rows.select(step_numbers(pl.col("step"))).to_series().to_list()
    starts, ends = (rows[name].to_list() for name in points)
    places = (rows.height - 1, 0)
    names = [(rows["step"][at] or "").strip().lower() for at in places]
    for at, name in zip(places, names, strict=True):
        if name in _MARKS:
            return at
    for at in places:
        if has_no_time(starts[at], ends[at]) and any(starts):
            return at
    doubtful = sorted(places, key=lambda at: (numbers[at] != 0, -(numbers[at] or 0)))
    for at in doubtful:
        others = [place for place in range(rows.height) if place != at]
        if numbers[at] == 0 and not _goes_before(starts, ends, at):
            return at
        if _is_mean(starts, ends, at, others, rounding) or _is_mean(starts, ends, at, others[1:], rounding):
            return at
    return None


def is_mean_row(row: Sequence[float | None], means: Sequence[float | None], rounding: float) -> bool:
    """Whether a row is a mean, as far as both are known."""
    pairs = [(a, b) for a, b in zip(row, means, strict=True) if a is not None and b is not None]
    return all(abs(a - b) <= rounding for a, b in pairs)


def has_no_time(start: int | None, end: int | None) -> bool:
    """Whether the points of a row are zeros, which stand for points that there are not."""
    return start == 0 and not end


def _goes_before(starts: Sequence[int | None], ends: Sequence[int | None], at: int) -> bool:
    """Whether a row numbered 0 is a step in front of the others: it ends where they begin, or before."""
    end, following = ends[at], [start for place, start in enumerate(starts) if place != at and start is not None]
    first = min(following, default=None)
    start = starts[at]
    if at or start is None or end is None or first is None:
        return False
    return start < end <= first and (start > 0 or end == first)


def _is_mean(
    starts: Sequence[int | None], ends: Sequence[int | None], at: int, others: Sequence[int], rounding: int
) -> bool:
    """Whether start and end are the means of others', in whole numbers, for times since the epoch exceed a float."""
    if not others:
        return False
    for values in (starts, ends):
        own, known = values[at], [value for place in others if (value := values[place]) is not None]
        if own is None or len(known) < len(others):
            return False
        if abs(own * len(known) - sum(known)) > rounding * len(known):
            return False
    return True
