"""Rows are in the same order however few columns decide it."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from stepscope.analysis.methods.ordering import in_order

VALUES = st.one_of(st.none(), st.integers(0, 3))
ROWS = st.lists(st.tuples(VALUES, st.integers(0, 9), st.sampled_from(["a", "b", None])), max_size=25)


@settings(deadline=None)
@given(ROWS, st.permutations(["x", "y", "z"]), st.booleans(), st.booleans())
def test_rows_are_in_the_order_of_a_stable_sort(values, keys, in_time, nulls_last) -> None:
    rows = pl.DataFrame(values, schema={"x": pl.Int32, "y": pl.Int64, "z": pl.String}, orient="row")
    rows = (rows.sort("y", maintain_order=True) if in_time else rows).with_row_index("row")

    found = in_order(rows, *keys, nulls_last=nulls_last)

    assert_frame_equal(found, rows.sort(keys, nulls_last=nulls_last, maintain_order=True))


@pytest.mark.parametrize("ranks", [[3, 3, 3, 3], [1, 0, 1, 0]])
def test_ties_are_sorted_by_the_next_column(ranks) -> None:
    rows = pl.DataFrame({"rank": ranks, "start_ns": [2, 1, 1, 2], "name": ["b", "b", "a", "a"]})

    assert_frame_equal(in_order(rows, "rank", "start_ns", "name"), rows.sort("rank", "start_ns", "name"))


@pytest.mark.parametrize("most", [5, 2**62, 2**63 - 1])
def test_two_columns_of_numbers_are_sorted_at_once_if_they_fit_into_one(most) -> None:
    times = [[most, -most, 0, most, 7], [-most - 1, most, -1, 1, most]]
    rows = pl.DataFrame({"rank": [-1] * 5 + [2] * 5, "start_ns": [*times[0], *times[1]], "name": list("abcdefghij")})

    found = in_order(rows.sort("name", descending=True), "rank", "start_ns")

    assert_frame_equal(found, rows.sort("name", descending=True).sort("rank", "start_ns", maintain_order=True))
