"""Sequences that recur: the longest windows of a row of numbers that occur often, no number in two of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

Row = tuple[int, ...]


def recurring_windows(
    rows: Mapping[Row, int], least: float, shortest: int, longest: int
) -> dict[Row, list[tuple[int, int]]]:
    """Where windows that recur lie in each row: begin and length of each, in order.

    Long windows come first, then those of the first row and place: what a window has taken is in no other. Windows that
    occur no more than `least` times in all rows together, counted without overlap, are left out. So the windows of one
    row never add up to more than the row.

    Args:
        rows: Rows of numbers to how often each of them occurs. Windows do not go beyond a row.
        least: How often a window must be exceeded.
        shortest: Least length of a window.
        longest: Greatest length of a window.

    Examples:
        >>> recurring_windows({(7, 1, 2, 3): 2, (1, 2, 3, 1, 2, 3): 1}, 3, 3, 4)
        {(7, 1, 2, 3): [(1, 3)], (1, 2, 3, 1, 2, 3): [(0, 3), (3, 3)]}
    """
    free = {row: [(0, len(row))] for row in rows}
    found: dict[Row, list[tuple[int, int]]] = {row: [] for row in rows}
    for length in range(longest, shortest - 1, -1):
        counts = _counts(rows, free, length)
        often = {window for window, count in counts.items() if count > least}
        if not often:
            continue
        taken = {row: list(_taken(row, free[row], length, often)) for row in rows}
        kept = Counter[Row]()
        for row, begins in taken.items():
            for begin in begins:
                kept[row[begin : begin + length]] += rows[row]
        for row, begins in taken.items():
            own = [(begin, length) for begin in begins if kept[row[begin : begin + length]] > least]
            found[row] += own
            free[row] = list(_left(free[row], own))
    return {row: sorted(places) for row, places in found.items() if places}


def _counts(rows: Mapping[Row, int], free: Mapping[Row, list[tuple[int, int]]], length: int) -> Mapping[Row, int]:
    """How often each window of a length occurs in what is free, counted without overlap."""
    counts: dict[Row, int] = defaultdict(int)
    for row, times in rows.items():
        ends: dict[Row, int] = {}
        for since, until in free[row]:
            for begin in range(since, until - length + 1):
                window = row[begin : begin + length]
                if begin >= ends.get(window, 0):
                    counts[window] += times
                    ends[window] = begin + length
    return counts


def _taken(row: Row, free: list[tuple[int, int]], length: int, often: set[Row]) -> Iterator[int]:
    """The begins of windows that occur often, one after the other."""
    for since, until in free:
        begin = since
        while begin <= until - length:
            if row[begin : begin + length] in often:
                yield begin
                begin += length
            else:
                begin += 1


def _left(free: list[tuple[int, int]], taken: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """What is free without what is taken, both in order."""
    places = iter([*taken, (-1, 0)])
    place = next(places)
    for since, until in free:
        begin = since
        while since <= place[0] < until:
            if place[0] > begin:
                yield begin, place[0]
            begin = sum(place)
            place = next(places)
        if until > begin:
            yield begin, until
