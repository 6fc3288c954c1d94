"""Arrows from launches to device work."""

from __future__ import annotations

from pathlib import Path

from runs import BASE_NS, both

from stepscope.run import Run
from stepscope.tables import KERNELS, SLICES
from stepscope.timeline import TimelineOptions


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
