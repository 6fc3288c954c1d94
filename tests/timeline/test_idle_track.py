"""Idle time on timelines: each cause as long as the answer about it says."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from runs import both

from stepscope.run import Run
from stepscope.tables import KERNELS, RANKS, SLICES, STEPS
from stepscope.timeline import TimelineOptions

MS = 1_000_000


def gap_run(*host: tuple[str, str, int, int]) -> Run:
    """A kernel until 10 ms, a gap of 20 ms, and a kernel until 40 ms.

    Args:
        host: What ran on the host in the gap: category, name, start and end in ms.
    """
    spans = [*host, ("runtime", "cudaLaunchKernel", 28, 29)]
    tables = {
        "ranks": RANKS.frame(device_kind=["cuda"]),
        "steps": STEPS.frame(
            step=[1], start_ns=[0], end_ns=[40 * MS], window_start_ns=[0], window_end_ns=[40 * MS], window=["device"]
        ),
        "slices": SLICES.frame(
            slice=range(len(spans)), start_ns=[start * MS for *_, start, _ in spans],
            duration_ns=[(end - start) * MS for *_, start, end in spans], category=[each[0] for each in spans],
            name=[each[1] for each in spans], thread=["1"] * len(spans), depth=[0] * len(spans),
            correlation=[None] * len(host) + [7], step=[1] * len(spans),
        ),
        "kernels": KERNELS.frame(
            kernel=[0, 1], start_ns=[0, 30 * MS], duration_ns=[10 * MS] * 2, kind=["compute"] * 2, stream=[7, 7],
            name=["first", "second"], correlation=[6, 7], step=[1, 1], launch_start_ns=[-MS, 28 * MS],
            launch_end_ns=[-MS, 29 * MS],
        ),
    }  # fmt: skip
    return Run.from_frames({0: tables})


def test_a_gap_with_several_causes_is_cut_where_they_change(tmp_path: Path) -> None:
    run = gap_run(("gc", "gc", 14, 20))

    found = both(run, tmp_path, TimelineOptions(explain=True))

    idle = [each for each in found.ranges if each.category == "idle"]
    assert [(each.name, each.end - each.start) for each in idle if each.end is not None] == [
        ("dispatch", 4 * MS),
        ("garbage_collection", 6 * MS),
        ("dispatch", 10 * MS),
    ]
    assert {dict(each.args)["gap_ns"] for each in idle} == {str(20 * MS)}
    assert {dict(each.args)["next_name"] for each in idle} == {"second"}
    expected = run.analyse("idle").select("cause", "idle_ns").sort("cause").rows()
    drawn = pl.DataFrame({"cause": [each.name for each in idle], "ns": [(each.end or 0) - each.start for each in idle]})
    assert drawn.group_by("cause").sum().sort("cause").rows() == expected


def test_what_begins_on_the_host_without_being_the_cause_cuts_nothing(tmp_path: Path) -> None:
    found = both(gap_run(("annotation", "mark", 12, 15)), tmp_path, TimelineOptions(explain=True))

    assert [each.name for each in found.ranges if each.category == "idle"] == ["dispatch"]
