"""Which call of the host is which execution: one communication call, seen by the recorder and by an operator window."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Sequence

import polars as pl

LATE_NS = 1_000_000_000
"""A call that was started and not awaited may begin to run that much later."""

Times = list[tuple[int, int, int]]
"""Start, latest time at which it may run, and row."""


def pairs(calls: pl.DataFrame, marks: pl.DataFrame, windows: Sequence[tuple[int, int]]) -> pl.DataFrame:
    """Pair executions with the marks of their calls.

    What the host calls runs in this order, in PyNative later than the call and on another thread. So where a window has
    as many executions of an operation as marks, and none runs before it is called, the first belongs to the first. Else
    an execution belongs to the mark that it began in, where most began in one; and where they did not, to the first
    that waits for its execution.

    Args:
        calls: `start_ns` and `operation` of executions.
        marks: `mark`, `start_ns`, `until_ns`, `operation`.
        windows: Start and end of each.

    Returns:
        `call` (row of `calls`) and `mark`; each at most once.
    """
    executions = calls.with_row_index("call").select("operation", "start_ns", until_ns="start_ns", row="call")
    ran = _by_window(executions, windows)
    asked = _by_window(marks.select("operation", "start_ns", "until_ns", row="mark"), windows)
    found = [pair for key, times in ran.items() if key in asked for pair in _paired(key[0], times, asked[key])]
    return pl.DataFrame(found, schema={"call": pl.UInt32, "mark": pl.UInt32}, orient="row")


def _by_window(rows: pl.DataFrame, windows: Sequence[tuple[int, int]]) -> dict[tuple[int | None, str], Times]:
    """The rows by the window in which they begin (None: in no one) and operation, in order of start."""
    found: dict[tuple[int | None, str], Times] = defaultdict(list)
    for operation, start, until, row in rows.sort("start_ns", "row").iter_rows():
        place = next((n for n, (first, last) in enumerate(windows) if first <= start <= last), None)
        found[place, operation].append((start, until, row))
    return found


def _paired(window: int | None, ran: Times, asked: Times) -> list[tuple[int, int]]:
    """Rows of executions and marks of one operation in one window that belong together."""
    both = list(zip(ran, asked, strict=False))
    if window is not None and len(ran) == len(asked) and all(run[0] >= mark[0] for run, mark in both):
        return [(run[2], mark[2]) for run, mark in both]
    within = _within(ran, asked)
    return within if window is None or 2 * len(within) >= len(ran) else _first_come(ran, asked)


def _within(ran: Times, asked: Times) -> list[tuple[int, int]]:
    """Each mark with the first execution that began while it lasted, and in no later one."""
    starts = [start for start, _, _ in asked]
    found: dict[int, int] = {}
    for start, _, row in ran:
        place = bisect_right(starts, start) - 1
        if place >= 0 and start <= asked[place][1]:
            found.setdefault(asked[place][2], row)
    return [(row, mark) for mark, row in found.items()]


def _first_come(ran: Times, asked: Times) -> list[tuple[int, int]]:
    """Each execution with the first mark before it that has none yet."""
    found, waiting, later = [], deque[tuple[int, int, int]](), deque(asked)
    for start, _, row in ran:
        while later and later[0][0] <= start:
            waiting.append(later.popleft())
        while waiting and waiting[0][1] + LATE_NS < start:
            waiting.popleft()
        if waiting:
            found.append((row, waiting.popleft()[2]))
    return found
