"""Ancestors of ranges are those of a simple search, compiled or not."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.sources.ancestors import climb, running
from stepscope.sources.native import ancestors as compiled
from stepscope.sources.native import library
from stepscope.sources.nesting import enclosing

RANGE = st.tuples(st.integers(-20, 60), st.integers(0, 25), st.integers(0, 2))
SCHEMA = {"start_ns": pl.Int64, "duration_ns": pl.Int64, "thread": pl.Int64}


def both(function, *arguments) -> list[list[int | None]]:  # type: ignore[no-untyped-def]
    """What the compiled code and the Python code give."""
    results = [function(*arguments)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "_LIBRARY", None)
        results.append(function(*arguments))
    assert all(result.dtype == pl.Int64 for result in results)
    return [result.to_list() for result in results]


def ancestry(parent: list[int | None], row: int | None) -> list[int]:
    """A row and its ancestors, from the inside out."""
    found = []
    while row is not None:
        found.append(row)
        row = parent[row]
    return found


@given(ranges=st.lists(RANGE, min_size=1, max_size=40), data=st.data())
@settings(max_examples=150, deadline=None)
def test_climbing_finds_the_nearest_wanted_range(ranges: list[tuple[int, int, int]], data: st.DataObject) -> None:
    parent = enclosing(pl.DataFrame(ranges, schema=SCHEMA, orient="row"))["parent"]
    row = st.integers(0, len(ranges) - 1)
    rows = data.draw(st.lists(st.one_of(st.none(), row), max_size=30))
    wanted = data.draw(st.lists(row, max_size=10))

    compiled_rows, plain = both(climb, pl.Series(rows, dtype=pl.Int64), parent, pl.Series(wanted, dtype=pl.Int64))

    above = [ancestry(parent.to_list(), one) for one in rows]
    assert plain == [next((one for one in line if one in wanted), None) for line in above]
    assert compiled_rows == plain


@given(
    ranges=st.lists(RANGE, max_size=40),
    moments=st.lists(st.tuples(st.integers(-25, 90), st.integers(0, 3)), max_size=30),
    data=st.data(),
)
@settings(max_examples=150, deadline=None)
def test_the_innermost_running_range_is_found(
    ranges: list[tuple[int, int, int]], moments: list[tuple[int, int]], data: st.DataObject
) -> None:
    frame = pl.DataFrame(ranges, schema=SCHEMA, orient="row")
    parent = enclosing(frame)["parent"]
    wanted = data.draw(st.integers(0, len(ranges)))
    asked = pl.DataFrame(moments, schema={"start_ns": pl.Int64, "thread": pl.Int64}, orient="row")

    compiled_rows, plain = both(running, frame, parent, wanted, asked)

    for (time, thread), found in zip(moments, plain, strict=True):
        started = [row for row in range(wanted) if ranges[row][2] == thread and ranges[row][0] <= time]
        last = max(started, key=lambda row: (ranges[row][0], -ranges[row][1], row), default=None)
        line = ancestry(parent.to_list(), last)
        assert found == next((r for r in line if r < wanted and ranges[r][0] + ranges[r][1] >= time), None)
    assert compiled_rows == plain


def test_deep_nesting_and_ends_beyond_int64_do_no_harm() -> None:
    count = 3000
    deep = pl.DataFrame({"start_ns": range(count), "duration_ns": [2**63 - 1] * count, "thread": [0] * count})
    parent = enclosing(deep)["parent"]
    moments = pl.DataFrame({"start_ns": [count, -1], "thread": [0, 0]})

    compiled_rows, plain = both(climb, pl.Series([count - 1]), parent, pl.Series([0]))
    assert compiled_rows == plain == [0]

    # times wrap around, so only the first range seems to end after the moment
    compiled_rows, plain = both(running, deep, parent, count, moments)
    assert compiled_rows == plain == [0, None]


@pytest.mark.skipif(not library.is_available(), reason="no compiled decoder here")
def test_what_is_not_plain_is_refused() -> None:
    rows, parent, gaps = pl.Series([0, 1]), pl.Series([None, 0]), pl.Series([0, None])

    assert compiled.climb(rows, parent, pl.Series([0])).to_list() == [0, 0]
    for columns in [
        (pl.Series([0, 2]), parent, rows),
        (pl.Series([0, -1]), parent, rows),
        (rows, pl.Series([None, 2]), rows),
        (rows, pl.Series([None, -1]), rows),
        (rows, pl.Series([1, 0]), pl.Series([], dtype=pl.Int64)),
        (pl.Series([2]), pl.Series([1, 0, 1, 3]), pl.Series([3])),  # in a circle
        (rows, parent, gaps),
        (rows, parent, pl.Series([2])),
        (rows, parent, pl.Series([-1])),
        (rows[:0], parent, rows),
        (rows.cast(pl.Int32), parent, rows),
    ]:
        with pytest.raises(library.Refused):
            compiled.climb(*columns)

    times = pl.Series([5, 6])
    assert compiled.running(rows, times, times, parent, 2, rows, times).to_list() == [0, 1]
    for arguments in [
        (rows, times, times, parent, 3, rows, times),
        (rows, times, times, parent, 0, rows, times),
        (pl.Series([0, -1]), times, times, parent, 2, rows, times),
        (rows, times, times, parent, 2, pl.Series([0, -1]), times),
        (rows, gaps, times, parent, 2, rows, times),
        (rows, times, times, parent, 2, rows, gaps),
        (rows, times, times, pl.Series([None, 7]), 2, rows, times),
        (rows, times, times, parent, 2, rows, times[:1]),
        (rows, times, times[:1], parent, 2, rows, times),
        (rows[:0], times[:0], times[:0], parent[:0], 0, rows, times),
    ]:
        with pytest.raises(library.Refused):
            compiled.running(*arguments)
