"""Queues between dataset and device, and the stage that holds training up."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.input.input_stages import Limits
from stepscope.errors import Unavailable
from stepscope.run import Run
from tests.analysis.inputs import MS, batches, samples, steps


def run_of(*frames: pl.DataFrame) -> Run:
    return Run.from_frames({0: {"input_pipeline": pl.concat(frames)}})


def verdicts(run: Run, **options: object) -> dict[str, str]:
    return dict(run.analyse("input_stages", **options).select("stage", "verdict").rows())


def test_a_queue_counts_its_empty_and_full_batches_and_averages_their_cost() -> None:
    queue = run_of(batches("device_queue", [0, 16, 3, 0], get_ms=[4, 0, 0, 2])).analyse("input_queues")

    row = queue.row(0, named=True)
    assert (row["batches"], row["empty"], row["full"], row["empty_ratio"]) == (4, 2, 1, 0.5)
    assert row["mean_get_ns"] == 1.5 * MS
    assert row["mean_push_ns"] == 1 * MS
    assert row["mean_total_ns"] == 2.5 * MS
    assert row["interval_ns"] == 10 * MS


def test_a_queue_whose_room_is_not_known_has_no_full_batches() -> None:
    queue = run_of(batches("get_next", [0, 5], capacity=None)).analyse("input_queues")

    assert queue.select("empty", "full", "full_ratio").row(0) == (1, None, None)


def test_a_queue_whose_size_is_not_known_was_neither_empty_nor_full() -> None:
    unknown = batches("get_next", [0, 5]).with_columns(queue_size=pl.lit(None, pl.Int64))

    assert run_of(unknown).analyse("input_queues").select("empty", "full", "empty_ratio").row(0) == (None,) * 3


def test_a_single_batch_has_no_interval() -> None:
    assert run_of(batches("device_queue", [0])).analyse("input_queues")["interval_ns"].to_list() == [None]


def test_batches_are_numbered_from_one_whatever_the_source_counts() -> None:
    late = batches("device_queue", [1, 2]).with_columns(pl.col("batch") + 40)

    assert run_of(late).analyse("input_batches").select("batch", "number").rows() == [(41, 1), (42, 2)]


def test_samples_of_operators_are_no_batches() -> None:
    with pytest.raises(Unavailable, match="no queue"):
        run_of(samples({"MapOp_1": [1, 2]})).analyse("input_batches")


def test_without_a_batch_in_the_chosen_steps_no_stage_is_judged() -> None:
    late = batches("device_queue", [3, 4]).with_columns(step=pl.Series([1, 2], dtype=pl.Int32))
    known = {"input_pipeline": late, "steps": steps(3)}
    run = Run.from_frames({0: known, 1: {**known, "input_pipeline": late.head(1)}})

    assert run.select(steps=2).analyse("input_stages")["rank"].unique().to_list() == [0]
    with pytest.raises(Unavailable, match="no batch of the chosen steps"):
        run.select(steps=3).analyse("input_stages")


def test_a_healthy_pipeline_is_healthy() -> None:
    assert verdicts(run_of(batches("device_queue", [3, 4, 5]), batches("get_next", [1, 2, 1]))) == {
        "data processing": "healthy",
        "data transmission": "healthy",
        "data obtaining": "healthy",
    }


def test_an_empty_host_queue_is_slow_processing_and_says_nothing_of_what_follows() -> None:
    found = verdicts(run_of(batches("device_queue", [0, 0, 5]), batches("get_next", [0, 2, 1])))

    assert found["data processing"] == "bottleneck"
    assert found["data transmission"] == "unknown"


def test_an_empty_data_queue_behind_a_full_host_queue_is_slow_transmission() -> None:
    found = verdicts(run_of(batches("device_queue", [9, 9, 9]), batches("get_next", [2, 0, 1])))

    assert found["data processing"] == "healthy"
    assert found["data transmission"] == "bottleneck"


@pytest.mark.parametrize(("sizes", "verdict"), [([0, 2, 1], "healthy"), ([0], "unknown")])
def test_that_the_first_batch_is_late_tells_nothing(sizes: list[int], verdict: str) -> None:
    found = verdicts(run_of(batches("dataset_iterator", sizes)), limits=Limits(host_empty_ratio=0.0))

    assert found["data processing"] == verdict


def test_thirty_percent_of_empty_queues_are_not_yet_too_many() -> None:
    ten = run_of(batches("dataset_iterator", [0, 0, 0, *[5] * 7]))

    assert verdicts(ten)["data processing"] == "healthy"
    assert verdicts(ten, limits=Limits(host_empty_ratio=0.29))["data processing"] == "bottleneck"


def test_without_a_data_queue_nothing_is_said_of_it() -> None:
    found = verdicts(run_of(batches("dataset_iterator", [5, 5])))

    assert (found["data transmission"], found["data obtaining"]) == ("unknown", "unknown")


def test_taking_a_batch_that_is_there_may_be_slow_itself() -> None:
    slow = batches("get_next", [3, 3, 3], get_ms=[1, 1, 1])

    assert verdicts(run_of(batches("device_queue", [5, 5, 5]), slow))["data obtaining"] == "bottleneck"
