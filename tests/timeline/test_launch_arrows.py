"""Arrows from launches to device work, and what chosen steps leave of samples."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import BASE_NS, both

from stepscope.run import Run
from stepscope.tables import KERNELS, MEMORY_CURVE, SLICES, STEPS
from stepscope.timeline import TimelineOptions, asking


def test_no_arrow_leads_back_in_time(tmp_path: Path) -> None:
    launches = [BASE_NS, BASE_NS + 1000]
    tables = {
        "slices": SLICES.frame(
            slice=[0, 1], start_ns=launches, duration_ns=[10, 10], category=["runtime"] * 2, name=["launch"] * 2,
            thread=["1"] * 2, depth=[0] * 2, correlation=[1, 2],
        ),
        "kernels": KERNELS.frame(
            kernel=[0, 1], start_ns=[BASE_NS + 5, BASE_NS + 900], duration_ns=[50, 50], kind=["compute"] * 2,
            stream=[7, 7], name=["gemm"] * 2, correlation=[1, 2], launch_start_ns=launches,
        ),
    }  # fmt: skip

    found = both(Run.from_frames({0: tables}), tmp_path, TimelineOptions(explain=False))

    ends = [(at, place.track) for number, place, at in found.flows if "Device" in place.track]
    assert ends == [(5, "Device: Stream 7")]


def test_a_launch_of_many_kernels_has_one_arrow_also_where_windows_meet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = range(8)
    launch = SLICES.frame(
        slice=[0], start_ns=[BASE_NS], duration_ns=[10], category=["runtime"], name=["cudaGraphLaunch"], thread=["1"],
        depth=[0], correlation=[1],
    )  # fmt: skip
    work = KERNELS.frame(
        kernel=list(kernels), start_ns=[BASE_NS + 20 + 10 * each for each in kernels], duration_ns=[5] * 8,
        kind=["compute"] * 8, stream=[7] * 8, name=["gemm"] * 8, correlation=[1] * 8, launch_start_ns=[BASE_NS] * 8,
    )  # fmt: skip
    monkeypatch.setattr(asking, "WINDOW_ROWS", 4)

    found = both(Run.from_frames({0: {"slices": launch, "kernels": work}}), tmp_path, TimelineOptions(explain=False))

    assert [at for _, place, at in found.flows if "Device" in place.track] == [20]
    assert len(found.flows) == 2


def test_samples_of_other_steps_are_left_out(tmp_path: Path) -> None:
    length = 100
    steps = STEPS.frame(
        step=[1, 2], start_ns=[BASE_NS, BASE_NS + length], end_ns=[BASE_NS + length, BASE_NS + 2 * length],
        window_start_ns=[BASE_NS, BASE_NS + length], window_end_ns=[BASE_NS + length, BASE_NS + 2 * length],
        window=["host"] * 2,
    )  # fmt: skip
    curve = MEMORY_CURVE.frame(
        time_ns=[BASE_NS + 50 * each for each in range(5)], allocated_bytes=[each + 1 for each in range(5)]
    )
    run = Run.from_frames({0: {"steps": steps, "memory_curve": curve}})

    found = both(run.select(steps="2"), tmp_path, TimelineOptions(explain=False))

    assert [each.value for each in found.samples] == [3, 4, 5]
