"""What a data loader cost the training loop."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import INPUT_PIPELINE, RANKS, SLICES
from tests.analysis.inputs import MS, batches, steps, usage_of

KNOWN = RANKS.frame(start_ns=[0], end_ns=[10**9])


def loaded(workers: int, *, wait_ms: int = 4, ready: int = 1) -> pl.DataFrame:
    """Three batches of a loader, one a step of 10 ms."""
    return INPUT_PIPELINE.frame(
        operator=["Images"] * 3,
        batch=[0, 1, 2],
        step=[1, 2, 3],
        time_ns=[2 * MS, 12 * MS, 22 * MS],
        duration_ns=[wait_ms * MS] * 3,
        queue_size=[ready] * 3 if workers else [None] * 3,
        queue_capacity=[4] * 3 if workers else [None] * 3,
        workers=[workers] * 3,
    )


def loader(tables: dict[str, pl.DataFrame]) -> dict[str, object]:
    run = Run.from_frames({0: {"ranks": KNOWN, "steps": steps(3), **tables}})
    return run.analyse("loader").row(0, named=True)


def test_the_wait_is_told_in_time_and_as_a_share_of_the_steps() -> None:
    row = loader({"input_pipeline": loaded(2)})

    assert (row["loader"], row["steps"], row["batches"], row["wait_ns"]) == ("Images", 3, 3, 12 * MS)
    assert (row["median_wait_ns"], row["wait_ratio"], row["ready"]) == (4 * MS, pytest.approx(0.4), 1.0)


def test_a_wait_in_a_step_of_unknown_length_is_no_share_of_the_others() -> None:
    row = loader({"input_pipeline": loaded(2), "steps": steps(2)})

    assert (row["wait_ns"], row["wait_ratio"]) == (12 * MS, pytest.approx(0.4))


def test_a_loader_without_workers_is_limited_by_that() -> None:
    assert loader({"input_pipeline": loaded(0)})["limited_by"] == "no workers"


@pytest.mark.parametrize(
    ("worker", "host", "limited"),
    [
        (0.45, 0.5, "worker CPU"),
        (0.45, 0.97, "worker CPU"),
        (0.05, 0.5, "reading"),
        (0.05, 0.97, "host CPU"),
        (0.25, 0.5, None),
    ],
)
def test_workers_tell_what_limits_them(worker: float, host: float, limited: str | None) -> None:
    """Of 4 processors, two workers keep so many busy."""
    cpu = [usage_of("worker", [worker / 2] * 3, name=f"worker {k}") for k in range(2)]
    row = loader({"input_pipeline": loaded(2), "host_usage": pl.concat([*cpu, usage_of("host", [host] * 3)])})

    assert row["worker_processors"] == pytest.approx(4 * worker)
    assert row["limited_by"] == limited


@pytest.mark.parametrize(
    ("ready", "handed", "limited"), [(3, 2 / 3, "handover"), (2, 0.0, "reading"), (0, 0.0, "reading")]
)
def test_waits_for_batches_that_were_ready_are_not_for_workers(ready: int, handed: float, limited: str) -> None:
    """Of 4 batches, two may be of the other worker; of the first one, nothing is known."""
    cpu = pl.concat([usage_of("worker", [0.02] * 3, name=f"worker {k}") for k in range(2)])
    row = loader({"input_pipeline": loaded(2, ready=ready), "host_usage": cpu})

    assert (row["handed_ratio"], row["limited_by"]) == (pytest.approx(handed), limited)


def test_without_a_queue_it_is_unknown_which_batches_were_ready() -> None:
    assert loader({"input_pipeline": loaded(0)})["handed_ratio"] is None
    one_step = loaded(2, ready=4).with_columns(step=pl.lit(1, pl.Int32))
    assert loader({"input_pipeline": one_step})["handed_ratio"] == 0


def test_marks_tell_the_wait_where_no_batches_were_recorded() -> None:
    marks = SLICES.frame(
        slice=[1, 2],
        start_ns=[1 * MS, 11 * MS],
        duration_ns=[3 * MS, 5 * MS],
        category=["annotation"] * 2,
        name=["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] * 2,
    )

    row = loader({"slices": marks})

    assert (row["loader"], row["batches"], row["wait_ns"], row["workers"]) == ("DataLoader", None, 8 * MS, 0)
    assert row["wait_ratio"] == pytest.approx(0.4)


def test_waits_outside_of_the_steps_are_none_of_theirs() -> None:
    marks = SLICES.frame(
        slice=[1, 2],
        start_ns=[1 * MS, 35 * MS],
        duration_ns=[3 * MS, 5 * MS],
        category=["annotation"] * 2,
        name=["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] * 2,
    )

    assert loader({"slices": marks})["wait_ns"] == 3 * MS


def test_queues_of_mindspore_are_no_loader() -> None:
    with pytest.raises(Unavailable, match="data loader"):
        Run.from_frames({0: {"input_pipeline": batches("dataset_iterator", [1, 2])}}).analyse("loader")


@pytest.mark.parametrize(("iterator", "limited_by"), [("_SingleProcess", "no workers"), ("_MultiProcessing", None)])
def test_the_name_of_an_iterator_shows_that_its_loader_has_no_workers(iterator: str, limited_by: str | None) -> None:
    marked = SLICES.frame(
        slice=[0],
        category=["annotation"],
        name=[f"enumerate(DataLoader)#{iterator}DataLoaderIter.__next__"],
        start_ns=[0],
        duration_ns=[MS],
    )
    run = Run.from_frames({0: {"steps": steps(2), "slices": marked}})

    (row,) = run.analyse("loader").to_dicts()

    assert row["limited_by"] == limited_by
