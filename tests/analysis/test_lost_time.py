"""Costs that are not in most steps are summed up, with the steps in which they are."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.job.time_by_rank import long_steps
from stepscope.analysis.methods.recurrence import period
from stepscope.analysis.step.lost_time import STEP_COSTS, summed
from tests.analysis.jobs import MS, job


def costs(*lost_ms: float, step_ms: float = 20, cause: str = "data_loading") -> pl.DataFrame:
    """What `summed` takes: the cost of each step on top of its work."""
    rows = {
        "rank": [0] * len(lost_ms),
        "cause": [cause] * len(lost_ms),
        "step": list(range(2, len(lost_ms) + 2)),
        "lost_ns": [round(ms * MS) for ms in lost_ms],
        "judged_ns": [round(ms * MS) for ms in lost_ms],
        "paused_ns": [0] * len(lost_ms),
        "step_ns": [round((step_ms + ms) * MS) for ms in lost_ms],
    }
    return pl.DataFrame(rows).select(STEP_COSTS)


def test_a_stall_in_every_fourth_step_counts_in_full_with_its_period() -> None:
    (row,) = summed(costs(*[0.5, 0.5, 60, 0.5] * 6)).to_dicts()

    assert (row["lost_ns"], row["median_ns"], row["period"]) == (369 * MS, MS // 2, 4)
    assert row["stalled_steps"] == [4, 8, 12, 16, 20, 24]
    assert row["stalled_ns"] == 6 * 59.5 * MS
    assert row["lost_ratio"] == pytest.approx(369 / (369 + 24 * 20))


def test_a_stall_in_every_second_step_is_one_although_the_median_has_half_of_it() -> None:
    (row,) = summed(costs(*[0.5, 60] * 10)).to_dicts()

    assert (row["period"], len(row["stalled_steps"])) == (2, 10)


def test_one_long_step_is_a_stall_without_period() -> None:
    (row,) = summed(costs(*[1.0] * 19, 4600)).to_dicts()

    assert (row["stalled_steps"], row["period"]) == ([21], None)
    assert row["lost_ns"] == 4619 * MS


def test_little_stalls_beside_great_ones_do_not_hide_the_pattern() -> None:
    (row,) = summed(costs(*[0.5, 6, 0.5, 0.5, 60, 0.5, 0.5, 3, 0.5, 60, 0.5, 0.5, 0.5, 0.5, 60])).to_dicts()

    assert row["period"] == 5


def test_all_steps_with_a_marked_cause_stall_however_little_some_cost() -> None:
    rows = costs(*[0, 344, 0, 0, 0, 0, 39, 0, 0, 0, 0, 212, 0, 0, 0, 0, 32]).with_columns(cause=pl.lit("checkpoint"))

    (row,) = summed(rows).to_dicts()

    assert (row["stalled_steps"], row["period"]) == ([3, 8, 13, 18], 5)


def test_what_every_step_has_is_no_stall() -> None:
    (row,) = summed(costs(*[9, 10, 11, 12] * 5)).to_dicts()

    assert (row["stalled_steps"], row["stalled_ns"], row["period"]) == ([], 0, None)
    assert row["mean_ns"] == round(10.5 * MS)


def test_steps_that_are_missing_do_not_shift_the_beat() -> None:
    steps = [step for step in range(1, 41) if step % 7]
    lost = [60 if step % 4 == 0 else 0 for step in steps]

    assert period(steps, lost) == 4


def test_two_times_prove_no_period() -> None:
    assert period(range(1, 11), [0, 0, 9, 0, 0, 0, 0, 9, 0, 0]) is None


def test_the_sums_are_those_of_the_idle_time_without_the_steps_at_both_ends() -> None:
    run = job(ranks=2, data_ns={0: 10 * MS, 1: 10 * MS})

    lost = run.analyse("lost_time").filter(pl.col("cause") == "data_loading")
    idle = run.analyse("idle").filter((pl.col("cause") == "data_loading") & pl.col("step").is_in([2, 3, 4]))

    assert lost["steps"].to_list() == [3, 3]  # the first starts things up, the last lacks the wait for the next
    assert lost["lost_ns"].sum() == idle["idle_ns"].sum()
    assert lost["mean_ns"].to_list() == [11 * MS, 11 * MS]


def test_of_many_equal_steps_none_is_long() -> None:
    run = job(ranks=2)

    assert long_steps(run.analyse("breakdown")).is_empty()
