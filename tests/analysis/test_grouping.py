"""Groups are the same however many are made at a time."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from stepscope.analysis.methods import statistics
from stepscope.analysis.methods.statistics import duration_statistics, grouped


def test_groups_made_in_parts_are_those_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["a", "b", None, "c", "d"]
    rows = pl.LazyFrame({"rank": [n % 2 for n in range(400)], "name": [names[n % 5] for n in range(400)]})
    rows = rows.with_columns(duration_ns=pl.int_range(pl.len()) * 7 % 101)
    keys = ["rank", "name"]
    whole = grouped(rows, keys, duration_statistics(), 400)
    assert (whole.height, whole["count"].sum()) == (10, 400)
    monkeypatch.setattr(statistics, "ROWS_AT_ONCE", 60)
    assert_frame_equal(grouped(rows, keys, duration_statistics(), 400), whole, check_row_order=False)
