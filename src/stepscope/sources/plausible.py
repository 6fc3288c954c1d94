"""Which times can belong to one recording: those within a week of its middle.

A damaged event at time 0 among events of today would make a recording of decades.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.present import plural
from stepscope.sources.base import Report

WEEK_NS = 7 * 24 * 3600 * 10**9
"""No recording lasts as long, and no range in one."""
FIRST_EPOCH_NS = 10**18
"""Times before 2001 are not since the epoch: MindSpore before 2.5 uses the monotonic clock of the host."""
STRAY = "start more than a week from the middle of the recording"
STRAY_REMEDY = "A clock was wrong or the file is damaged; the rest is complete. Record again if you need them."


def report_strays(count: int, report: Report, path: Path, what: str = "event") -> None:
    """Report what starts at impossible times and is left out, if anything."""
    if count:
        problem = f"{plural(count, what)} left out: more than a week from the middle of the recording"
        report("warning", path, problem, STRAY_REMEDY, lost=count)


class Times:
    """The times of a recording read in parts: its middle, and whether any are far from it."""

    def __init__(self) -> None:
        self._parts: list[tuple[Any, ...]] = []
        """Median, number of rows, first and last of each part."""

    def add(self, starts: pl.Series) -> None:
        """Take in some starts (ns); nulls do not count."""
        known = starts.drop_nulls() if starts.null_count() else starts
        if (middle := known.quantile(0.5, "lower")) is not None:
            self._parts.append((int(middle), len(known), known.min(), known.max()))

    @property
    def middle_ns(self) -> int | None:
        """The median of the parts' medians, each counted by its rows; to a microsecond."""
        rows = sum(count for _, count, *_ in self._parts)
        for middle, count, *_ in sorted(self._parts):
            rows -= 2 * count
            if rows <= 0:
                return int(middle)
        return None

    @property
    def has_strays(self) -> bool:
        """Whether any start lies more than a week from the middle."""
        middle = self.middle_ns or 0
        return any(first < middle - WEEK_NS or last > middle + WEEK_NS for *_, first, last in self._parts)


def is_near(start: pl.Expr, middle_ns: int | None) -> pl.Expr:
    """Whether a start lies within a week of the middle; unknown ones are accepted."""
    if middle_ns is None:
        return pl.lit(True)
    return start.is_between(middle_ns - WEEK_NS, middle_ns + WEEK_NS).fill_null(True)


@dataclass(frozen=True)
class Sorted:
    """Rows whose times can be true, and how many others there were, by what is wrong with them."""

    rows: pl.DataFrame
    wrong: Mapping[str, int]

    @property
    def lost(self) -> int:
        """Rows left out."""
        return sum(self.wrong.values())

    def problem(self) -> str:
        """What was left out, in words."""
        return lost_rows(self.wrong, self.lost + self.rows.height)


def lost_rows(wrong: Mapping[str, int], all_rows: int) -> str:
    """How many of `all_rows` were left out, by what is wrong with them (as of `Sorted`), in words."""
    lost = sum(wrong.values())
    parts = [f"{count} {reason}" for reason, count in wrong.items() if count]
    if len(parts) == 1:
        return f"{lost} of {all_rows} rows {parts[0].partition(' ')[2]} and are left out"
    return f"{lost} of {all_rows} rows are left out: {', '.join(parts)}"


def sort_out(rows: pl.DataFrame, middle_ns: int | None, *, start: pl.Expr, end: pl.Expr | None = None) -> Sorted:
    """Leave out rows whose times cannot be true.

    Args:
        middle_ns: Middle of the recording; None if it is not known.
        start: Start of a row in ns, or its only time; null if it could not be read.
        end: End of a row in ns, likewise.
    """
    if _are_possible(rows, middle_ns, start, end):
        return Sorted(rows, {})
    # Far-off starts come before sums of them, which would overflow.
    tests = {"have no readable time": start.is_null(), STRAY: ~is_near(start, middle_ns)}
    if end is not None:
        tests["have no readable time"] |= end.is_null()
        tests |= {"end before they start": end < start, "last longer than a week": end > start + WEEK_NS}
    verdict = pl.coalesce(*(pl.when(test).then(pl.lit(reason)) for reason, test in tests.items()))
    judged = rows.select(verdict=verdict).to_series()
    if judged.null_count() == rows.height:
        return Sorted(rows, {})
    counts = dict(judged.drop_nulls().value_counts().iter_rows())
    return Sorted(rows.filter(judged.is_null()), {reason: counts.get(reason, 0) for reason in tests})


def _are_possible(rows: pl.DataFrame, middle_ns: int | None, start: pl.Expr, end: pl.Expr | None) -> bool:
    """Whether all times are possible, as they nearly always are: by their extremes, which costs less than a verdict."""
    times = rows.select(start=start) if end is None else rows.select(start=start, end=end)
    starts = times["start"]
    if any(column.null_count() for column in times) or not _are_near(starts, middle_ns):
        return False
    if end is None or not rows.height:
        return True
    lengths = times["end"] - starts
    shortest, longest = lengths.min(), lengths.max()
    return isinstance(shortest, int) and isinstance(longest, int) and shortest >= 0 and longest <= WEEK_NS


def _are_near(starts: pl.Series, middle_ns: int | None) -> bool:
    """Whether no start is more than a week from the middle."""
    first, last = starts.min(), starts.max()
    if middle_ns is None or not (isinstance(first, int) and isinstance(last, int)):
        return True
    return first >= middle_ns - WEEK_NS and last <= middle_ns + WEEK_NS
