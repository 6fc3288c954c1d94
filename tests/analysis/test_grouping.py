"""Groups are the same however many rows are read and grouped at a time."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from stepscope.analysis.methods import statistics
from stepscope.analysis.methods.statistics import duration_statistics, grouped


@pytest.mark.parametrize("ranks", [1, 2])
def test_groups_made_in_parts_are_those_made_at_once(ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["a", "b", None, "c", "d"]
    rows = pl.DataFrame({"rank": [n % ranks for n in range(400)], "name": [names[n % 5] for n in range(400)]})
    rows = rows.with_columns(duration_ns=pl.int_range(pl.len()) * 7 % 101, self_ns=pl.int_range(pl.len()) % 3)
    keys = ["rank", "name"]
    whole = grouped([rows], keys, "self_ns")
    expected = rows.group_by(keys).agg(*duration_statistics(), pl.col("self_ns").sum())
    assert_frame_equal(whole, expected, check_row_order=False)
    parts = [rows[:1], rows[1:150], rows[150:]]
    assert_frame_equal(grouped(parts, keys, "self_ns"), whole, check_row_order=False)
    monkeypatch.setattr(statistics, "ROWS_AT_ONCE", 60)
    assert_frame_equal(grouped(parts, keys, "self_ns"), whole, check_row_order=False)
