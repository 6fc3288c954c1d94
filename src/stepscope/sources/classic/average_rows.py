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
from typing import NamedTuple

import polars as pl

_NUMBER = r"^\s*\d{1,9}(?:\.0*)?\s*$"
_FAR = 100
"""The next step starts within this many lengths of a step with start 0, otherwise 0 is not a time. Chosen by us."""
_NEARER = 4
"""A row is the average if its start is this many times nearer to the middle than to its place. Chosen by us."""
_MARKS = ("-", "--", "avg", "average", "mean")


class _Row(NamedTuple):
    number: int | None
    start: int | None
    end: int | None


def step_numbers(step: pl.Expr) -> pl.Expr:
    """The numbers of steps that stand as text (`3`, `3.0`); null for any other mark."""
    return (
        pl.when(step.str.contains(_NUMBER)).then(step.str.strip_chars().cast(pl.Float64, strict=False)).cast(pl.Int32)
    )


def without(rows: pl.DataFrame, at: int) -> pl.DataFrame:
    """All rows but the one at a place."""
    return pl.concat([rows.head(at), rows.slice(at + 1)])


def find_average(rows: pl.DataFrame, points: tuple[str, str], rounding: int) -> int | None:
    """The place of the average; None if there is none.

    Args:
        rows: The rows as the file has them: `step` as text, and the points.
        points: Columns of start and end.
        rounding: How far a rounded mean may be off.
    """
    if rows.height < 2:
        return None
    numbers = rows.select(step_numbers(pl.col("step"))).to_series()
    listed = [_Row(*row) for row in zip(numbers, *(rows[name] for name in points), strict=True)]
    places = (rows.height - 1, 0)
    for at in places:
        if (rows["step"][at] or "").strip().lower() in _MARKS:
            return at
    for at in places:
        _, start, end = listed[at]
        if start == 0 and any(begun for _, begun, _ in listed) and (not end or _is_far(end, _others(listed, at))):
            return at
    doubtful = sorted(places, key=lambda at: (listed[at].number != 0, -(listed[at].number or 0)))
    for at in doubtful:
        row, others = listed[at], _others(listed, at)
        if row.number == 0 and (at or not _goes_before(row, others)):
            return at
        if _is_mean(row, others, rounding) or _is_mean(row, others[1:], rounding):
            return at
    return next((at for at in doubtful if _is_out_of_place(listed, at)), None)


def is_mean_row(row: Sequence[float | None], means: Sequence[float | None], rounding: float) -> bool:
    """Whether a row is a mean, if both are known."""
    pairs = [(a, b) for a, b in zip(row, means, strict=True) if a is not None and b is not None]
    return all(abs(a - b) <= rounding for a, b in pairs)


def _others(rows: Sequence[_Row], at: int) -> list[_Row]:
    return [*rows[:at], *rows[at + 1 :]]


def _first_start(rows: Sequence[_Row]) -> int | None:
    return min((start for _, start, _ in rows if start is not None), default=None)


def _goes_before(row: _Row, others: Sequence[_Row]) -> bool:
    """Whether a first row numbered 0 is a step before the others: it ends when they begin, or earlier."""
    (_, start, end), first = row, _first_start(others)
    if start is None or end is None or first is None:
        return False
    return start < end <= first and (start > 0 or end == first)


def _is_far(end: int, others: Sequence[_Row]) -> bool:
    """Whether a row with start 0 has another clock than the others, which begin long after it ends."""
    first = _first_start(others)
    return first is not None and 0 < _FAR * end < first


def _is_out_of_place(rows: Sequence[_Row], at: int) -> bool:
    """Whether a row, the first or the last, breaks the order of all others, or is not due."""
    others = _others(rows, at)
    if None in (rows[at].start, rows[at].end) or not _follow_each_other(others):
        return False
    return not _follow_each_other(rows) or _is_not_due(rows[at], others, is_last=at > 0)


def _follow_each_other(rows: Sequence[_Row]) -> bool:
    """Whether each begins when the one before has ended, or later."""
    known = [(start, end) for _, start, end in rows if start is not None and end is not None]
    return len(known) == len(rows) and all(a[1] <= b[0] for a, b in pairwise(known))


def _is_not_due(row: _Row, others: Sequence[_Row], *, is_last: bool) -> bool:
    """Whether the start of a row does not fit its number, by the pace of the others.

    At the end of a file it is the average only if it begins where the middle one of steps 1 to N does, numbered N + 1.
    """
    number, start, _ = row
    known = [(n, start, end) for n, start, end in others if n is not None and start is not None and end is not None]
    if number is None or start is None or len(known) < len(others):
        return False
    pace = median(end - begun for _, begun, end in known)
    neighbour, begun, _ = known[-1 if is_last else 0]
    steps, late = number - neighbour, start - begun
    if steps in ((0, 1) if is_last else (-1,)):  # the step that is due
        return False
    if not is_last:
        return steps >= 0 or abs(late - steps * pace) > pace
    middles = (steps - number / 2, steps - (number - 1) / 2)  # with and without the first step
    return min(abs(late - middle * pace) for middle in middles) < abs(late - steps * pace) / _NEARER


def _is_mean(row: _Row, others: Sequence[_Row], rounding: int) -> bool:
    """Whether start and end are the means of others', in whole numbers, for times since the epoch exceed a float."""
    if not others:
        return False
    for point in ("start", "end"):
        own, known = getattr(row, point), [at for other in others if (at := getattr(other, point)) is not None]
        if own is None or len(known) < len(others) or abs(own * len(known) - sum(known)) > rounding * len(known):
            return False
    return True
