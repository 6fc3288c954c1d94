"""Timelines of classic profiles agree with those that MindInsight made of the same directories.

Where they differ, MindInsight's fault or the data's is stated:

- MindInsight's times are those of the raw profile (epoch, us) less `diff_time`; ours are those of the step trace. The
  two are apart by the same for all events of a rank. Times of the epoch in us are rounded to quarters of one.
- MindInsight adds `diff_time` to its overlap analysis in the summary, where it subtracts it from everything else.
- The overlap analysis in the sample's raw profile is made up: four bars of 4 ms, which no kernels or calls fit. Ours
  follows from kernels and calls.
- MindInsight shows the device's work as the raw profile has it, here the first 60 of the 328 kernels that MindSpore's
  own timeline has.
- It closes a bar of a scope only when an operator in another scope of that depth comes, so a bar reaches over operators
  outside of the scope and over the time between steps. Ours end there.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from reading import Drawn, Timeline, read

from stepscope import open_run
from stepscope.errors import StepscopeError
from stepscope.timeline import TimelineOptions, write_timeline

ROUNDED_NS = 260
"""A quarter of a us, and the rounding of the file."""
NO_RAW = ("real_cluster_pipeline4", "real_parallel_strategy2", "synthetic_dynamic1")
"""Directories without raw profiles, which are all that MindInsight reads."""
REQUESTS = ("all", "rank0_1_nomerge", "rank0_model1_merge")
PHASES = {"FP_BP Time": "Forward and backward", "Iteration Refresh": "After backward"}


class Event(NamedTuple):
    """An event of MindInsight's; times in ns."""

    process: str
    rank: int
    thread: str
    name: str
    category: str
    start: int
    length: int


@pytest.fixture
def golden(shared: Path) -> Path:
    """MindInsight's answers."""
    return shared / "golden/mindinsight"


def answer(golden: Path, name: str, kind: str, request: str) -> tuple[dict[str, str], list[Event]]:
    """The parameters of a request, and the events of its answer."""
    told = json.loads((golden / name / f"msprof_timeline_{kind}_{request}.json").read_bytes())
    events, labels = told["response"], dict[tuple[str, int, int | None], str]()
    for event in events:
        if event["ph"] == "M" and event["name"] in ("process_name", "thread_name"):
            thread = event["tid"] if event["name"] == "thread_name" else None
            labels[event["name"], event["pid"], thread] = event["args"]["name"]
    found = []
    for event in events:
        if event["ph"] == "M":
            continue
        process, rank = labels["process_name", event["pid"], None].rsplit(" Rank", 1)
        thread = labels.get(("thread_name", event["pid"], event["tid"]), str(event["tid"]))
        found.append(
            Event(process, int(rank), thread, event["name"], event.get("cat", ""), _ns(event["ts"]), _ns(event["dur"]))
        )
    return told["request"]["params"], found


def _ns(us: str | float) -> int:
    whole, _, part = f"{float(us):.3f}".partition(".") if isinstance(us, float) else str(us).partition(".")
    return int(whole) * 1000 + int(part.ljust(3, "0")[:3] or 0)


def asked(directory: Path, file: Path, kind: Any, parameters: dict[str, str]) -> tuple[Timeline, int]:
    """Our timeline for the same parameters, and what it counts from."""
    run = open_run(directory)
    if ranks := parameters.get("rank_list"):
        run = run.select(ranks=[int(rank) for rank in ranks.split(",")])
    options = TimelineOptions(
        kind=kind,
        graphs=parameters.get("model_list"),
        merge_graphs=parameters.get("merge_model", "true") == "true",
        scope_names=parameters.get("scope_name") == "true",
        align=False,
        explain=False,
    )
    written = write_timeline(run, file, options)
    return read(file), written.base_ns


def of_rank(timeline: Timeline, rank: int, *categories: str) -> list[Drawn]:
    """The ranges of a rank in some categories, by start."""
    rows = [row for row in timeline.ranges if row.place.process.split(" (")[0].split() == ["rank", str(rank)]]
    return sorted(row for row in rows if row.category in categories) if categories else rows


@pytest.mark.parametrize("kind", ["summary", "detail"])
@pytest.mark.parametrize("request_", REQUESTS)
def test_steps_are_those_of_mindinsight(golden: Path, shared: Path, tmp_path: Path, kind: str, request_: str) -> None:
    parameters, theirs = answer(golden, "synthetic_dp4", kind, request_)
    ours, base = asked(shared / "data/mindspore/synthetic_dp4", tmp_path / "own.json", kind, parameters)

    ranks = sorted({event.rank for event in theirs})
    assert [process.split(" (")[0] for process in ours.processes if "rank" in process] == [f"rank {r}" for r in ranks]
    merged = parameters.get("merge_model", "true") == "true"
    for rank in ranks:
        steps, phases = of_rank(ours, rank, "step"), of_rank(ours, rank, "phase")
        assert {row.place.track for row in steps} == {f"Steps: {'Iterations' if merged else 'Step trace (model 1)'}"}
        trace = [event for event in theirs if event.rank == rank and event.process == "Step Trace"]
        iterations = [event for event in trace if event.category == "Iteration Time"]
        assert [(row.name, row.end - row.start) for row in steps if row.end] == [
            (event.name, event.length) for event in iterations
        ]
        apart = [base + row.start - event.start for row, event in zip(steps, iterations, strict=True)]
        assert max(apart) - min(apart) <= ROUNDED_NS
        for category, title in PHASES.items():
            stated = [event for event in trace if event.category == category]
            drawn = [row for row in phases if row.name == title]
            assert [row.end - row.start for row in drawn if row.end] == [event.length for event in stated]
            for row, event in zip(drawn, stated, strict=True):
                assert abs(base + row.start - event.start - apart[0]) <= ROUNDED_NS


def test_the_choices_are_those_of_mindinsight(golden: Path, shared: Path, tmp_path: Path) -> None:
    run = open_run(shared / "data/mindspore/synthetic_dp4")
    choices = json.loads((golden / "synthetic_dp4/msprof_timeline_option.json").read_bytes())["response"]

    assert choices["rank_list"] == [each.rank for each in run.ranks]
    assert choices["model_list"] == run.table("steps").collect()["graph"].unique().to_list()
    with pytest.raises(StepscopeError, match="no step is of graph 2; it has graph 1"):
        write_timeline(run, tmp_path / "none.json", TimelineOptions(graphs="2"))


def test_what_mindinsight_cannot_read_is_shown_from_other_files(golden: Path, shared: Path, tmp_path: Path) -> None:
    shown = {}
    for name in NO_RAW:
        assert not any(answer(golden, name, kind, request)[1] for kind in ("summary", "detail") for request in REQUESTS)
        try:
            timeline, _ = asked(shared / "data/mindspore" / name, tmp_path / "own.json", "detail", {})
        except StepscopeError as error:
            assert "nothing with a time was recorded" in str(error)
            continue
        shown[name] = Counter(
            row.category for row in timeline.ranges if row.category in ("step", "collective", "kernel")
        )

    # 5 steps of each of 4 ranks, with 97 or 349 calls; 8 steps with 41 kernels; a graph of strategies has no times.
    assert shown == {
        "real_cluster_pipeline4": {"step": 20, "collective": 5 * 2 * (97 + 349)},
        "synthetic_dynamic1": {"step": 8, "kernel": 8 * 41},
    }


def test_the_work_of_device_and_host_is_that_of_mindinsight(golden: Path, shared: Path, tmp_path: Path) -> None:
    parameters, theirs = answer(golden, "synthetic_dp4", "detail", "all")
    ours, base = asked(shared / "data/mindspore/synthetic_dp4", tmp_path / "own.json", "detail", parameters)

    for rank in range(4):
        stated = [event for event in theirs if event.rank == rank]
        apart = min(base + row.start for row in of_rank(ours, rank, "step")) - min(
            event.start for event in stated if event.category == "Iteration Time"
        )
        # The steps of the sample's raw profiles count from the first one, its kernels from the first one of rank 0.
        late = base + min(row.start for row in of_rank(ours, rank, "step")) - 45_000_000_000_000
        kernels = of_rank(ours, rank, "kernel")
        assert len(kernels) == 328
        in_order = sorted(kernels, key=lambda row: row.start)
        hardware = sorted((event for event in stated if event.process == "Ascend Hardware"), key=lambda e: e.start)
        assert len(hardware) == 60
        for row, event in zip(in_order, hardware, strict=False):  # they are the first ones
            assert row.place.track == f"Device: Stream {event.thread}"
            assert (row.name, (row.end or 0) - row.start) == (event.name, event.length)
            assert abs(base + row.start - event.start - (apart - late)) <= ROUNDED_NS
        for process, category, track in (
            ("HCCL", "communication_task", "Communication planes: Plane 0"),
            ("CANN", "runtime", "Host: thread 5"),
        ):
            (event,) = [event for event in stated if event.process == process]
            (row,) = of_rank(ours, rank, category)
            assert (row.place.track, row.name, (row.end or 0) - row.start) == (track, event.name, event.length)
            assert abs(base + row.start - event.start - apart) <= ROUNDED_NS


def test_the_overlap_analysis_follows_from_kernels_and_calls(golden: Path, shared: Path, tmp_path: Path) -> None:
    _, summary = answer(golden, "synthetic_dp4", "summary", "all")
    _, detail = answer(golden, "synthetic_dp4", "detail", "all")
    ours, _ = asked(shared / "data/mindspore/synthetic_dp4", tmp_path / "own.json", "detail", {})
    profiles = shared / "data/mindspore/synthetic_dp4/profiler"

    for rank in range(4):
        diff_us = json.loads((profiles / f"profiler_info_{rank}.json").read_bytes())["diff_time"]
        once, twice = (
            [event for event in events if event.process == "Overlap Analysis" and event.rank == rank]
            for events in (summary, detail)
        )
        assert [a.start - b.start for a, b in zip(once, twice, strict=True)] == [2000 * diff_us] * 4
        assert {event.length for event in once} == {4_000_000}
        steps = joined(of_rank(ours, rank, "step"))
        computing, calls = (
            common(joined(of_rank(ours, rank, category)), steps) for category in ("kernel", "collective")
        )
        drawn = {
            track: joined([row for row in of_rank(ours, rank, "overlap") if row.place.track.endswith(f": {track}")])
            for track in ("Computing", "Communication", "Communication (not overlapped)", "Free")
        }
        assert drawn == {
            "Computing": computing,
            "Communication": calls,
            "Communication (not overlapped)": common(calls, gaps(computing)),
            "Free": common(common(gaps(computing), gaps(calls)), steps),
        }


Spans = list[tuple[int, int]]


def joined(rows: list[Drawn]) -> Spans:
    """Where any of the ranges is, in order."""
    found: Spans = []
    for start, end in sorted((row.start, row.end or row.start) for row in rows):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def gaps(spans: Spans) -> Spans:
    """Where none of them is."""
    ends = [-1, *(end for _, end in spans)]
    return [pair for pair in zip(ends, [*(start for start, _ in spans), 1 << 62], strict=True) if pair[0] < pair[1]]


def common(one: Spans, other: Spans) -> Spans:
    """Where both are; each is in order."""
    found, rest = [], list(reversed(other))
    for start, end in one:
        while rest and rest[-1][1] <= start:
            rest.pop()
        kept = []
        while rest and rest[-1][0] < end:
            kept.append(rest.pop())
            found.append((max(start, kept[-1][0]), min(end, kept[-1][1])))
        rest += kept[-1:]
    return found


def test_scopes_are_those_of_mindinsight_without_its_faults(golden: Path, shared: Path, tmp_path: Path) -> None:
    parameters, theirs = answer(golden, "synthetic_dp4", "detail", "rank0_model1_merge")
    ours, base = asked(shared / "data/mindspore/synthetic_dp4", tmp_path / "own.json", "detail", parameters)

    apart = base + min(row.start for row in of_rank(ours, 0, "step")) - 800_000_000_000
    bars = {
        (row.place.track.removeprefix("Scopes: Layer "), row.name, row.start): row
        for row in ours.ranges
        if row.category == "scope"
    }
    stated = [event for event in theirs if event.process == "Scope Layer"]
    differing = [event for event in stated if not _matching(event, bars, apart - base)]
    assert len(stated) - len(differing) == 35
    step_ends = 800_000_000_000 + 19_268_640
    over_two_steps, cut = differing[:2], differing[2:]
    # Two go on over operators outside of the scope into the next step; one ends with the first 60 kernels.
    assert [(event.thread, event.name) for event in over_two_steps] == [
        ("layer0", "Default"),
        ("layer1", "network-TrainOneStepCell"),
    ]
    assert all(event.start < step_ends < event.start + event.length for event in over_two_steps)
    last = max(event.start + event.length for event in stated)
    assert [event.start + event.length for event in cut] == [last]


def _matching(event: Event, bars: dict[tuple[str, str, int], Drawn], apart: int) -> Drawn | None:
    for (level, name, start), row in bars.items():
        if (f"layer{level}", name) == (event.thread, event.name) and abs(start - event.start - apart) <= ROUNDED_NS:
            return row if abs((row.end or 0) - row.start - event.length) <= 2 * ROUNDED_NS else None
    return None
