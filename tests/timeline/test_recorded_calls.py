"""Dumps of a flight recorder on a timeline."""

from __future__ import annotations

from pathlib import Path

from reading import read

from stepscope import open_run
from stepscope.timeline import write_timeline
from tests.sources.flight_dumps import call, waits, write_job


def test_the_last_calls_of_each_rank_are_drawn(tmp_path: Path) -> None:
    ranks = {0: [call(), call("all_gather"), waits()], 1: [call(), waits("all_gather")]}
    run = open_run(write_job(tmp_path / "dumps", ranks, {"0": [0, 1]}))

    made = write_timeline(run, tmp_path / "hang.pftrace")

    assert {rank: made.of_rank(rank) for rank in (0, 1)} == {0: {"recorded_call": 3}, 1: {"recorded_call": 2}}
    found = read(tmp_path / "hang.pftrace")
    names = [(each.place.process, each.name) for each in [*found.ranges, *found.points]]
    assert sorted(name for _, name in names if "not done" in name) == [
        "nccl:all_gather (not done)",
        "nccl:all_reduce (not done)",
    ]
    assert len(names) == 5
