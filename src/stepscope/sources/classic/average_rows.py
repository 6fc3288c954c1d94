"""Which row of a table of steps is their average: judged by its values, as it is marked in many ways.

It is the first or the last row. MindSpore calls it `-`, or 0, or as if it were one more step, with points that are 0 or
the means of the others'; of a profile of one step it may be a copy of that step, or all zeros. Steps may have been left
out of a file, so that the average is that of others, too: then it is known by its place, for no step begins before the
one above it ends, and the start of an average lies where the middle one of its steps begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

import polars as pl

_NUMBER = r"^\s*\d{1,9}(?:\.0*)?\s*$"
_FAR = 100
"""The next step starts within this many lengths of a step with start 0, otherwise 0 is not a time. Chosen by us."""
_NEARER = 4
"""A row is the average if its start is this many times nearer to the middle than to its place. Chosen by us."""
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
        if starts[at] == 0 and any(starts) and (has_no_time(starts[at], ends[at]) or _is_far(starts, ends, at)):
            return at
    doubtful = sorted(places, key=lambda at: (numbers[at] != 0, -(numbers[at] or 0)))
    for at in doubtful:
        others = [place for place in range(rows.height) if place != at]
        if numbers[at] == 0 and not _goes_before(starts, ends, at):
            return at
        if _is_mean(starts, ends, at, others, rounding) or _is_mean(starts, ends, at, others[1:], rounding):
            return at
    return _out_of_place(numbers, starts, ends, doubtful)


def is_mean_row(row: Sequence[float | None], means: Sequence[float | None], rounding: float) -> bool:
    """Whether a row is a mean, if both are known."""
    pairs = [(a, b) for a, b in zip(row, means, strict=True) if a is not None and b is not None]
    return all(abs(a - b) <= rounding for a, b in pairs)


def has_no_time(start: int | None, end: int | None) -> bool:
    """Whether all points of a row are zeros, i.e. missing."""
    return start == 0 and not end


def _goes_before(starts: Sequence[int | None], ends: Sequence[int | None], at: int) -> bool:
    """Whether a row numbered 0 is a step before the others: it ends when they begin, or earlier."""
    end, following = ends[at], [start for place, start in enumerate(starts) if place != at and start is not None]
    first = min(following, default=None)
    start = starts[at]
    if at or start is None or end is None or first is None:
        return False
    return start < end <= first and (start > 0 or end == first)


def _is_far(starts: Sequence[int | None], ends: Sequence[int | None], at: int) -> bool:
    """Whether a row with start 0 has another clock than the others, which begin long after it ends."""
    end = ends[at]
    first = min((start for place, start in enumerate(starts) if place != at and start is not None), default=None)
    return end is not None and first is not None and end > 0 and first > _FAR * end


def _out_of_place(
    numbers: Sequence[int | None], starts: Sequence[int | None], ends: Sequence[int | None], places: Sequence[int]
) -> int | None:
    """Position of the one row that breaks the order of the others; None if there is none."""
    for at in places:
        others = [place for place in range(len(starts)) if place != at]
        spans = [(starts[place], ends[place]) for place in others]
        if not _follow_each_other(spans):
            continue
        start, end = starts[at], ends[at]
        if start is None or end is None:
            continue
        between = [*spans, (start, end)] if at else [(start, end), *spans]
        if not _follow_each_other(between) or _is_not_due(numbers, starts, ends, at):
            return at
    return None


def _follow_each_other(spans: Sequence[tuple[int | None, int | None]]) -> bool:
    """Whether each begins when the one before has ended, or later."""
    known = [(start, end) for start, end in spans if start is not None and end is not None]
    return len(known) == len(spans) and all(a[1] <= b[0] for a, b in pairwise(known))


def _is_not_due(
    numbers: Sequence[int | None], starts: Sequence[int | None], ends: Sequence[int | None], at: int
) -> bool:
    """Whether the start of a row does not fit its number, by the pace of the others.

    At the end of a file it is the average only if it begins where the middle one of steps 1 to N does, numbered N + 1.
    """
    others = [place for place in range(len(numbers)) if place != at]
    rows = [(numbers[place], starts[place], ends[place]) for place in others]
    known = [(number, start, end) for number, start, end in rows if None not in (number, start, end)]
    number, start = numbers[at], starts[at]
    if number is None or start is None or len(known) < len(others):
        return False
    pace = median((end or 0) - (begun or 0) for _, begun, end in known)
    beside, begun = (known[-1] if at else known[0])[:2]
    steps = number - (beside or 0)
    if (at and steps in (0, 1)) or (not at and steps == -1):  # the step that is due
        return False
    late = start - (begun or 0)
    if not at:
        return steps >= 0 or abs(late - steps * pace) > pace
    middles = (steps - number / 2, steps - (number - 1) / 2)  # with and without the first step
    return min(abs(late - middle * pace) for middle in middles) < abs(late - steps * pace) / _NEARER


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
