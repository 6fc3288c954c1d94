"""Timelines of classic profiles without raw ones: as MindInsight hands out `timeline_display`, and by their files.

MindInsight hands the whole file out, but for bars of scopes from a level on. Ours has the same kernels and steps.
Differing is: calls of communication come from the step trace, whose times the sample's file does not share; bars of
scopes are made of the names of kernels, where the sample's file has two made-up ones a step.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest
from reading import Drawn, Timeline, read
from runs import FORMS

from stepscope import open_run
from stepscope.timeline import Format, TimelineOptions, write_timeline

CALLS, STEPS, SCOPES, NO_STREAMS = 10000, 100000, 100001, 100000


def drawn(directory: Path, file: Path, **options: bool) -> tuple[Timeline, int]:
    """Our timeline of all that was recorded, and what it counts from."""
    wanted = TimelineOptions(align=False, explain=False, **options)  # type: ignore[arg-type]
    written = write_timeline(open_run(directory), file, wanted)
    return read(file), written.base_ns


def of(timeline: Timeline, rank: int, category: str) -> list[Drawn]:
    """The ranges of a rank in a category."""
    return [
        row
        for row in timeline.ranges
        if row.category == category and row.place.process.split(" (")[0].split() == ["rank", str(rank)]
    ]


@pytest.mark.parametrize(("name", "ranks"), [("synthetic_dp4", 4), ("synthetic_dynamic1", 1), ("synthetic_hetero1", 1)])
def test_kernels_and_steps_are_those_that_mindinsight_hands_out(
    shared: Path, tmp_path: Path, name: str, ranks: int
) -> None:
    ours, base = drawn(shared / "data/mindspore" / name, tmp_path / "own.json", scope_names=True)

    for rank in range(ranks):
        told = shared / "golden/mindinsight" / name / f"timeline_scope2_dev{rank}.json"
        events = [event for event in json.loads(told.read_bytes())["response"] if event["ph"] == "X"]
        kernels = [event for event in events if event["pid"] == rank and event["tid"] < NO_STREAMS]
        assert Counter(
            (
                event["args"]["fullname"],
                f"Device: Stream {event['tid']}",
                round(event["ts"] * 1000),
                round(event["dur"] * 1000),
            )
            for event in kernels
        ) == Counter(
            (row.name, row.place.track, base + row.start, (row.end or 0) - row.start)
            for row in of(ours, rank, "kernel")
        )
        # A step trace with times of dynamic shapes has no points: steps are those of the timeline.
        steps = [event for event in events if event["tid"] == STEPS]
        assert [round(event["dur"] * 1000) for event in steps] == [
            (row.end or 0) - row.start for row in sorted(of(ours, rank, "step"), key=lambda row: row.start)
        ]
        calls = sum(event["pid"] == CALLS for event in events)
        assert calls == len(of(ours, rank, "collective")) + len(of(ours, rank, "communication"))
        totals = json.loads((told.parent / f"timeline_summary_dev{rank}.json").read_bytes())["response"]
        rows = of(ours, rank, "kernel")
        assert totals["op_exe_times"] == len(rows)
        assert totals["num_of_ops"] == len({row.name for row in rows})
        assert totals["num_of_streams"] == len({row.place.track for row in rows})
        # The deepest name has six parts; the last one is the operator.
        levels = {row.place.track for row in of(ours, rank, "scope") if "Host" not in row.place.track}
        deepest = max(row.name.count("/") for row in rows)
        assert levels == {f"Scopes: Layer {level}" for level in range(deepest)}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["summary", "detail"])
def test_a_timeline_of_an_old_version_has_all_of_its_files(
    shared: Path, tmp_path: Path, kind: str, form: Format
) -> None:
    profile = shared / "data/mindspore/real_run1_widedeep_lenet"
    rows = list(csv.DictReader((profile / "profiler/output_timeline_data_1.txt").open(), skipinitialspace=True))
    shown = json.loads((profile / "profiler/timeline_display_1.json").read_bytes())
    file = tmp_path / "own.pftrace"

    write_timeline(open_run(profile), file, TimelineOptions(kind=kind, explain=False), format=form)  # type: ignore[arg-type]
    ours = read(file)

    assert [process.split(" (")[0] for process in ours.processes] == ["rank 1"]
    counts = Counter(row.category for row in ours.ranges)
    assert counts["step"] == 322  # rows of the step trace without the average
    assert counts["phase"] == 2 * 322
    assert counts["kernel"] == (len(rows) if kind == "detail" else 0)
    assert counts["collective"] == (len(shown) - len(rows) if kind == "detail" else 0)
    if kind == "detail":
        times = Counter(round(float(row["duration(ms)"]) * 1e6) for row in rows)
        assert times == Counter((row.end or 0) - row.start for row in of(ours, 1, "kernel"))
        streams = {f"Device: Stream {row['stream_id']}" for row in rows}
        tracks = {row.place.track for row in of(ours, 1, "kernel")}
        assert {track.removesuffix(" (2)") for track in tracks} == streams


def test_ranks_of_a_mixed_directory_stand_in_numeric_order(shared: Path, tmp_path: Path) -> None:
    run = open_run(shared / "data/mindspore/real_mixed_dev0_1_10")
    problems = run.table("issues").collect()

    for kind in ("summary", "detail"):
        write_timeline(run, tmp_path / "own.json", TimelineOptions(kind=kind, explain=False))
        ours = read(tmp_path / "own.json")
        # Nothing of rank 1 has a time.
        assert [process.split()[:2] for process in ours.processes] == [["rank", "0"], ["rank", "10"]]
        assert [len(of(ours, rank, "step")) for rank in (0, 10)] == [20, 40]
        calls = 80 if kind == "detail" else 0
        assert [len(of(ours, rank, "collective")) for rank in (0, 10)] == [calls, calls]
    # MindInsight hands its three events out, from 0 on; the step trace begins after 450 s.
    assert problems.filter(rank=0)["problem"].str.contains("its clock differs from that of the step trace").any()
