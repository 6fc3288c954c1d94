"""Ranges that scripts mark: on the host, on the device, points, and the work launched in them."""

from __future__ import annotations

import pytest

from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import SLICES
from tests.analysis.device.launched import US, Range, Work, run_of


def marked(name: str, start: int, end: int, **more: object) -> Range:
    return Range(name, start, end, category="annotation", **more)  # type: ignore[arg-type]


def test_ranges_are_summed_by_name() -> None:
    run = run_of([], [marked("forward", 0, 10), marked("forward", 20, 50), marked("log", 60, 61)])

    rows = run.analyse("ranges").to_dicts()

    assert [(row["name"], row["place"], row["count"], row["total_ns"]) for row in rows] == [
        ("forward", "host", 2, 40 * US),
        ("log", "host", 1, US),
    ]
    assert (rows[0]["mean_ns"], rows[0]["std_ns"], rows[0]["max_ns"]) == (20 * US, 14_142, 30 * US)
    assert (rows[1]["std_ns"], rows[0]["kernels"]) == (None, None)


def test_a_mark_on_the_device_has_the_name_of_the_one_on_the_host() -> None:
    ranges = [
        marked("step", 0, 10, correlation=5, process="MSTX"),
        Range("MSTX", 3, 15, category="device_annotation", correlation=5, process="MSTX"),
        Range("checkpoint", 7, 7, category="mark"),
        Range("checkpoint", 9, 9, category="mark"),
    ]

    rows = run_of([], ranges).analyse("ranges").select("name", "place", "count", "total_ns").rows()

    assert rows == [("step", "device", 1, 12 * US), ("step", "host", 1, 10 * US), ("checkpoint", "point", 2, None)]


def test_a_range_that_the_framework_records_as_well_counts_once_on_the_host() -> None:
    ranges = [
        marked("step", 0, 12, correlation=5, process="Python"),
        marked("step", 1, 11, correlation=5, process="MSTX"),
        marked("step", 20, 30, process="Python"),
    ]

    rows = run_of([], ranges).analyse("ranges").select("name", "place", "count", "total_ns").rows()

    assert rows == [("step", "host", 2, 20 * US), ("step", "framework", 1, 12 * US)]


def test_work_belongs_to_all_ranges_around_its_launch_once_for_each_name() -> None:
    ranges = [
        marked("step", 0, 100),
        marked("block", 10, 60, parent=0),
        marked("block", 20, 50, parent=1),
        Range("cudaLaunchKernel", 25, 26, parent=2, category="runtime", correlation=1000),
        Range("cudaLaunchKernel", 70, 71, parent=0, category="runtime", correlation=1001),
        marked("idle", 80, 90, parent=0),
    ]
    work = [Work("a", 30, 35, (25, 26)), Work("b", 75, 85, (70, 71))]

    rows = run_of(work, ranges).analyse("ranges").sort("name").select("name", "kernels", "kernel_ns").rows()

    assert rows == [("block", 1, 5 * US), ("idle", 0, 0), ("step", 2, 15 * US)]


def test_ranges_are_compared_over_ranks() -> None:
    frames = {
        rank: {
            "slices": SLICES.frame(
                slice=[0], start_ns=[0], duration_ns=[(rank + 1) * US], category=["annotation"], name=["forward"]
            )
        }
        for rank in range(3)
    }

    (row,) = Run.from_frames(frames).analyse("rank_ranges").to_dicts()

    assert (row["count"], row["ranks"], row["total_ns"], row["mean_ns"]) == (3, 3, 6 * US, 2 * US)
    assert (row["shortest_rank"], row["longest_rank"], row["longest_mean_ns"]) == (0, 2, 3 * US)


def test_there_is_no_answer_without_ranges() -> None:
    with pytest.raises(Unavailable, match="no marked ranges"):
        run_of([], [Range("aten::mm", 0, 10)]).analyse("ranges")
