"""The queue on the device has another clock than those on the host, though one table has both."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import both, sliced, written

from stepscope.run import Run
from stepscope.tables import HOST_USAGE, INPUT_PIPELINE

HOUR_NS = 3_600_000_000_000


def queues(host_ns: int, device_ns: int) -> Run:
    """A rank with two samples of a queue on the host and two of the queue on the device, 20 ns apart."""
    samples = INPUT_PIPELINE.frame(
        time_ns=[host_ns, host_ns + 20, device_ns, device_ns + 20],
        operator=["BatchOp_1", "BatchOp_1", "get_next", "get_next"],
        queue_size=[1, 2, 3, 4],
    )
    return Run.from_frames({0: sliced([{"start": 0, "length": 100}], input_pipeline=samples)})


@pytest.mark.parametrize(("host_ns", "device_ns"), [(5, 70 * HOUR_NS), (70 * HOUR_NS, 5)])
def test_each_queue_is_drawn_from_the_start_on(host_ns: int, device_ns: int, tmp_path: Path) -> None:
    run = queues(host_ns, device_ns)

    made = written(run, tmp_path)

    assert sorted((each.at, each.value) for each in both(run, tmp_path).samples) == [(0, 1), (0, 3), (20, 2), (20, 4)]
    assert made.notes == [
        "The times of get_next in input_pipeline and input_pipeline (rank 0) are of another clock than the rest: "
        "they are drawn from the start of the recording on, and nothing says when they really ran."
    ]


def test_tables_of_other_clocks_are_named_together(tmp_path: Path) -> None:
    usage = HOST_USAGE.frame(time_ns=[7], scope=["host"], user_ratio=[0.5])
    samples = INPUT_PIPELINE.frame(time_ns=[9], operator=["BatchOp_1"], queue_size=[1])
    frames = {0: sliced([{"start": 0, "length": 100}], host_usage=usage, input_pipeline=samples)}

    assert written(Run.from_frames(frames), tmp_path).notes == [
        "The times of host_usage and input_pipeline (rank 0) are of another clock than the rest: they are drawn "
        "from the start of the recording on, and nothing says when they really ran."
    ]
