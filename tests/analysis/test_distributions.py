"""Statistics of durations: exact, whatever is read at a time."""

from __future__ import annotations

import statistics

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from stepscope.analysis.columns import names
from stepscope.analysis.methods.distributions import (
    OVER_RANKS,
    STATISTICS,
    distributions,
    distributions_over_ranks,
)

DURATIONS = st.one_of(st.integers(0, 20), st.integers(1_000_000, 1_000_040), st.integers(0, 2**50))
ROWS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", None]), DURATIONS), min_size=1, max_size=60)


def _by_hand(values: list[int]) -> dict[str, int | None]:
    ordered, n = sorted(values), len(values)
    quartiles = [ordered[-(-n * quarters // 4) - 1] for quarters in (1, 2, 3)]
    return {
        "count": n,
        "total_ns": sum(values),
        "mean_ns": round(sum(values) / n),
        "min_ns": ordered[0],
        **dict(zip(("q1_ns", "median_ns", "q3_ns"), quartiles, strict=True)),
        "p95_ns": ordered[-(-(n - 1) * 19 // 20)],
        "max_ns": ordered[-1],
    }


def _frame(rows: list[tuple[int, str | None, int]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"rank": pl.Int32, "name": pl.String, "duration_ns": pl.Int64}, orient="row")


@given(ROWS)
def test_all_figures_are_those_of_the_sorted_durations(rows: list[tuple[int, str | None, int]]) -> None:
    found = distributions(_frame(rows).lazy(), ["name"])

    assert found.columns == ["name", *names(STATISTICS)]
    assert set(found["name"]) == {name for _, name, _ in rows}
    for row in found.iter_rows(named=True):
        values = [value for _, name, value in rows if name == row["name"]]
        expected = _by_hand(values)
        assert abs(row.pop("mean_ns") - expected.pop("mean_ns")) <= 1  # type: ignore[operator]
        deviation = row.pop("std_ns")
        assert {name: row[name] for name in expected} == expected
        if len(values) == 1:
            assert deviation is None
        else:
            exact = statistics.stdev(values)
            assert abs(deviation - exact) <= 1 + 1e-6 * exact


@given(ROWS)
def test_the_ranks_of_the_extremes(rows: list[tuple[int, str | None, int]]) -> None:
    for row in distributions_over_ranks(_frame(rows).lazy(), ["name"]).iter_rows(named=True):
        own = [(value, rank) for rank, name, value in rows if name == row["name"]]
        assert row["ranks"] == len({rank for _, rank in own})
        assert (row["min_ns"], row["min_rank"]) == min(own)
        assert (row["max_ns"], -row["max_rank"]) == max((value, -rank) for value, rank in own)


def test_no_rows_have_no_statistics() -> None:
    found = distributions_over_ranks(_frame([]).lazy(), ["name"])

    assert found.is_empty() and found.columns == ["name", *names((*STATISTICS, *OVER_RANKS))]


def test_keys_that_are_alike_in_all_but_null_stay_apart() -> None:
    rows = [(0, "a", 1), (0, None, 3), (1, None, 5), (1, "a", 7)]
    found = distributions(_frame(rows).lazy(), ["rank", "name"]).select("rank", "name", "q3_ns")

    assert_frame_equal(found, _frame(rows).rename({"duration_ns": "q3_ns"}), check_row_order=False)
