"""Windows that recur in rows of numbers, without overlap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stepscope.analysis.methods.recurring_windows import recurring_windows


def test_the_longest_window_comes_first_and_shorter_ones_take_what_is_left() -> None:
    row = (1, 2, 3, 4, 5, 9, 1, 2, 3)

    assert recurring_windows({row: 2}, 1, 3, 5) == {row: [(0, 5), (5, 4)]}
    assert recurring_windows({row: 1}, 1, 3, 5) == {row: [(0, 3), (6, 3)]}


def test_a_number_repeated_is_cut_into_windows_that_do_not_overlap() -> None:
    assert recurring_windows({(7,) * 11: 1}, 2, 3, 3) == {(7,) * 11: [(0, 3), (3, 3), (6, 3)]}
    assert recurring_windows({(7,) * 11: 1}, 3, 3, 3) == {}  # nine windows that overlap are three that do not


def test_windows_do_not_go_beyond_a_row_and_must_exceed_the_least() -> None:
    assert recurring_windows({(1, 2): 50, (3, 1): 50}, 5, 3, 4) == {}
    assert recurring_windows({(1, 2, 3): 5}, 5, 3, 4) == {}
    assert recurring_windows({(1, 2, 3): 6}, 5, 3, 4) == {(1, 2, 3): [(0, 3)]}


def test_a_window_that_others_have_taken_is_left_to_shorter_ones() -> None:
    # of length 4, both 1, 2, 3, 4 and 2, 3, 4, 5 occur twice, but the one takes the places of the other
    row, other, third = (1, 2, 3, 4, 5), (1, 2, 3, 4), (2, 3, 4, 5)

    found = recurring_windows({row: 1, other: 1, third: 1}, 1, 3, 4)

    assert found == {row: [(0, 4)], other: [(0, 4)]}


@given(
    st.dictionaries(
        st.lists(st.integers(0, 3), min_size=1, max_size=30).map(tuple), st.integers(1, 4), min_size=1, max_size=5
    ),
    st.integers(1, 6),
)
def test_no_number_is_in_two_windows_and_each_window_recurs(rows: dict[tuple[int, ...], int], least: int) -> None:
    found = recurring_windows(rows, least, 3, 10)

    counts: dict[tuple[int, ...], int] = {}
    for row, places in found.items():
        end = 0
        for begin, length in places:
            assert begin >= end and 3 <= length <= 10
            end = begin + length
            counts[row[begin:end]] = counts.get(row[begin:end], 0) + rows[row]
        assert end <= len(row)
    assert all(count > least for count in counts.values())
