"""Ranges on lanes: all are placed, and on a lane they lie within one another or follow one another."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.timeline.lanes import MOST_DEEP, Lanes

Range = tuple[int, int, int]
RANGES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 15)).map(lambda it: (it[0], it[1], it[1] + it[2])),
    max_size=40,
)


def frame(ranges: list[Range]) -> pl.DataFrame:
    columns = {"track": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64}
    return pl.DataFrame(ranges, schema=columns, orient="row").with_row_index("row")


def placed(ranges: list[Range], cuts: list[int] | None = None) -> pl.DataFrame:
    """The ranges with their lanes, placed window by window."""
    rows, lanes, found = frame(ranges), Lanes(), []
    for start, end in pairwise([None, *sorted(set(cuts or ())), None]):
        inside = pl.lit(value=True) if start is None else pl.col("start_ns") >= start
        found.append(lanes.place(rows.filter(inside if end is None else inside & (pl.col("start_ns") < end)), end))
    return pl.concat(found)


def deepest(rows: pl.DataFrame) -> int:
    """The most ranges within one another on a lane; fails if two overlap otherwise."""
    most = 0
    for lane in rows.partition_by("track", "lane"):
        stack: list[int] = []
        for start, end in lane.select("start_ns", "end_ns").iter_rows():
            while stack and stack[-1] <= start:
                stack.pop()
            assert not stack or end <= stack[-1]
            stack.append(end)
            most = max(most, len(stack))
    return most


@given(RANGES, st.lists(st.integers(0, 45), max_size=4))
def test_on_a_lane_ranges_lie_within_or_follow_one_another(ranges: list[Range], cuts: list[int]) -> None:
    for rows in (placed(ranges), placed(ranges, cuts)):
        assert sorted(rows["row"]) == list(range(len(ranges)))
        assert rows.sort("row").drop("row", "lane").equals(frame(ranges).drop("row"))
        assert rows["lane"].null_count() == 0
        deepest(rows)


@given(RANGES)
def test_no_lane_is_left_out(ranges: list[Range]) -> None:
    for track in placed(ranges).partition_by("track"):
        assert set(track["lane"]) == set(range(int(track["lane"].max()) + 1))  # type: ignore[arg-type]


@given(RANGES)
def test_what_nests_stays_on_one_lane(ranges: list[Range]) -> None:
    shrunk: list[Range] = []
    for track, start, end in sorted(set(ranges), key=lambda each: (each[0], each[1], -each[2])):
        around = [e for t, s, e in shrunk if t == track and s <= start < e]
        shrunk.append((track, start, min([end, *around])))

    assert set(placed(shrunk)["lane"]) <= {0}


@pytest.mark.parametrize("count", [2, 5, 40])
def test_a_staircase_of_ranges_takes_as_many_lanes_as_overlap(count: int) -> None:
    stairs = [(0, step * 10, step * 10 + 25) for step in range(count)]  # each overlaps the next two

    assert int(placed(stairs)["lane"].max()) + 1 == min(count, 3)  # type: ignore[arg-type]


def test_ranges_that_are_open_at_a_cut_keep_their_lane_free_of_what_overlaps_them() -> None:
    rows = placed([(0, 0, 100), (0, 50, 120), (0, 60, 70), (0, 110, 130)], [55])

    assert rows["lane"].to_list() == [0, 1, 0, 0]


def test_deep_nesting_goes_on_on_another_lane() -> None:
    count = 2 * MOST_DEEP + 10
    rows = placed([(0, depth, 10_000 - depth) for depth in range(count)])

    assert deepest(rows) == MOST_DEEP
    assert rows["lane"].max() == 2


def test_deep_nesting_over_windows_stays_within_the_bound() -> None:
    count = MOST_DEEP + 60
    rows = placed([(0, depth, 10_000 - depth) for depth in range(count)], [100, 240, 260])

    assert deepest(rows) <= MOST_DEEP
    assert rows.height == count


def test_equal_ranges_lie_within_one_another() -> None:
    assert placed([(0, 5, 9)] * 3)["lane"].to_list() == [0, 0, 0]


def test_what_has_no_length_needs_no_lane_of_its_own() -> None:
    assert placed([(0, 0, 10), (0, 5, 5), (0, 10, 10), (0, 10, 20), (0, 20, 20)])["lane"].to_list() == [0] * 5
