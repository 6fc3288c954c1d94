"""Which rank begins what was recorded late."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis import late_starts
from stepscope.errors import Unavailable

RANKS = 4


def steps(late_ns: int, count: int = 1) -> pl.LazyFrame:
    """Steps of 1000 ns, the first of rank 2 begun this late and shorter by as much."""
    rows: list[tuple[int, ...]] = [
        (rank, step, step * 1000 + (late_ns if (rank, step) == (2, 0) else 0), (step + 1) * 1000)
        for rank in range(RANKS)
        for step in range(count)
    ]
    names = ("rank", "step", "start_ns", "end_ns")
    return pl.LazyFrame({name: [row[place] for row in rows] for place, name in enumerate(names)}).cast(
        {"rank": pl.Int32, "step": pl.Int32}
    )


def arrivals(*lateness_ns: int, step: int = 0) -> pl.DataFrame:
    """Calls that rank 2 enters this much later than the others."""
    rows = [
        {
            **{"rank": rank, "step": step, "members": RANKS, "point_to_point": False},
            **{"start_ns": call, "end_ns": call + 1},
            **{"lateness_ns": late if rank == 2 else 0, "is_last": (rank == 2) == (late > 0) and rank in (2, 3)},
        }
        for call, late in enumerate(lateness_ns)
        for rank in range(RANKS)
    ]
    return pl.DataFrame(rows)


def test_a_rank_that_begins_late_and_is_waited_for_is_named() -> None:
    (late,) = late_starts(arrivals(110, 20, 0), steps(100), None).iter_rows(named=True)

    assert (late["rank"], late["start_late_ns"], late["waited_ns"]) == (2, 100, 110)
    assert (late["calls_last"], late["calls"], late["steps"]) == (2, 3, 1)
    assert late["waited_ratio"] == pytest.approx(0.11)


@pytest.mark.parametrize(
    ("late", "begun", "count"),
    [
        pytest.param(110, 40, 1, id="what delays it came later"),
        pytest.param(110, 100, 3, id="lost among three steps"),
        pytest.param(40, 40, 1, id="little"),
        pytest.param(0, 100, 1, id="nobody waits for it"),
    ],
)
def test_others_are_not(late: int, begun: int, count: int) -> None:
    assert late_starts(arrivals(late), steps(begun, count), None).is_empty()


def test_a_clock_that_is_ahead_is_no_late_start() -> None:
    clocks = pl.DataFrame({"rank": [2], "offset_ns": [100]}, schema={"rank": pl.Int32, "offset_ns": pl.Int64})

    assert late_starts(arrivals(110), steps(100), clocks).is_empty()


def test_without_steps_there_is_no_answer() -> None:
    with pytest.raises(Unavailable, match="no steps"):
        late_starts(arrivals(110), steps(0, 0), None)
