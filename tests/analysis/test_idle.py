"""Why nothing ran."""

from __future__ import annotations

import polars as pl
from polars.testing import assert_frame_equal

from stepscope.analysis.step.idle import unbroken
from tests.analysis.jobs import MS, job


def by_cause(run, rank: int) -> dict[str, int]:
    idle = run.analyse("idle").filter((pl.col("rank") == rank) & (pl.col("step") == 2))
    return dict(idle.select("cause", "idle_ns").rows())


def test_idle_time_sums_to_the_free_time_of_each_step() -> None:
    run = job(gap_ns={1: MS}, data_ns={2: 3 * MS})

    idle = run.analyse("idle").group_by("rank", "step").agg(pl.col("idle_ns").sum())
    free = run.analyse("breakdown").select("rank", "step", "free_ns")

    joined = free.join(idle, on=["rank", "step"], how="left").with_columns(pl.col("idle_ns").fill_null(0))
    assert (joined["free_ns"] == joined["idle_ns"]).all()


def test_a_late_launch_is_dispatch() -> None:
    found = by_cause(job(gap_ns={1: 2 * MS}), 1)

    assert found["dispatch"] >= 6 * MS


def test_waiting_for_a_batch_is_data_loading() -> None:
    found = by_cause(job(data_ns={1: 5 * MS}), 1)

    assert found["data_loading"] >= 5 * MS


def test_idle_time_is_the_same_however_much_is_split_at_once(monkeypatch) -> None:
    at_once = job(gap_ns={1: MS}, data_ns={2: 3 * MS}).analyse("idle_pieces")
    assert at_once.height

    monkeypatch.setattr("stepscope.analysis.step.idle.ACTIVITY_AT_ONCE", 1)

    assert_frame_equal(job(gap_ns={1: MS}, data_ns={2: 3 * MS}).analyse("idle_pieces"), at_once)


def test_pieces_without_a_break_are_one() -> None:
    rows = [(0, 1, "python", 0, 5), (0, 1, "python", 5, 5), (0, 1, "other", 10, 2), (0, 2, "other", 12, 3)]
    rows += [(0, 2, "other", 16, 1), (1, 2, "other", 17, 4), (1, 2, "other", 21, 4)]
    names = ["rank", "step", "cause", "start_ns", "duration_ns"]
    pieces = pl.DataFrame(rows[::-1], schema=names, orient="row")

    assert unbroken(pieces).rows() == [(0, 0, 15), (0, 16, 1), (1, 17, 8)]
    assert unbroken(pieces, "step", "cause").rows() == [
        (0, 1, "python", 0, 10),
        (0, 1, "other", 10, 2),
        (0, 2, "other", 12, 3),
        (0, 2, "other", 16, 1),
        (1, 2, "other", 17, 8),
    ]
    assert unbroken(pieces.clear()).is_empty()
