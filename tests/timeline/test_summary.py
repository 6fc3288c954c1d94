"""The summary of an Ascend directory agrees with its table of steps: what a rank was doing sums to the same."""

from __future__ import annotations

import csv
import sqlite3
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from reading import read
from runs import BASE_NS, both

from stepscope import Run, open_run
from stepscope.tables import COLLECTIVES, KERNELS, STEPS
from stepscope.timeline import TimelineOptions, write_timeline

SUMMARY = TimelineOptions(kind="summary", explain=False)
TRACKS = {
    "Computing": "computing",
    "Communication": "communication",
    "Communication (not overlapped)": "communication_not_overlapped",
    "Free": "free",
}
ROUNDED_NS = 1
"""Times in the files are us with three decimals, read as floating-point numbers."""
Sums = dict[tuple[int, int, str], int]


def stated(directory: Path) -> Sums:
    """Rank, step and column to ns: of `step_trace_time.csv`, or `StepTraceTime` of `analysis.db`."""
    found: Sums = {}
    for file in sorted(directory.glob("*/ASCEND_PROFILER_OUTPUT/step_trace_time.csv")):
        for row in csv.DictReader(file.open()):
            columns = {
                "computing": row["Computing"],
                "communication": float(row["Overlapped"]) + float(row["Communication(Not Overlapped)"]),
                "communication_not_overlapped": row["Communication(Not Overlapped)"],
                "free": row["Free"],
            }
            found |= _keyed(int(row["Device_id"]), int(row["Step"]), columns)
    for file in sorted(directory.glob("*/ASCEND_PROFILER_OUTPUT/analysis.db")):
        database = sqlite3.connect(f"file:{file}?immutable=1", uri=True)
        query = "select deviceId, step, computing, overlapped, communication_not_overlapped, free from StepTraceTime"
        for device, step, computing, overlapped, alone, free in database.execute(query):
            columns = {
                "computing": computing,
                "communication": overlapped + alone,
                "communication_not_overlapped": alone,
                "free": free,
            }
            found |= _keyed(device, int(step), columns)
        database.close()
    return found


def _keyed(rank: int, step: int, columns: dict[str, float | str]) -> Sums:
    """Ranks of one host have the numbers of their devices."""
    return {(rank, step, name): round(float(us) * 1000) for name, us in columns.items()}


def drawn(run: Run, file: Path) -> Sums:
    """The same of the ranges in the timeline, cut at the steps' windows."""
    written = write_timeline(run, file, SUMMARY)
    windows = defaultdict(list)
    columns = ("rank", "step", "window_start_ns", "window_end_ns")
    for rank, step, start, end in run.table("steps").select(columns).collect().iter_rows():
        moved = written.base_ns + written.offsets_ns.get(rank, 0)
        windows[rank].append((step, start - moved, end - moved))
    found: Sums = {
        (rank, step, name): 0 for rank, steps in windows.items() for step, *_ in steps for name in TRACKS.values()
    }
    timeline = read(file)
    assert timeline.is_whole
    for row in timeline.ranges:
        group, _, title = row.place.track.partition(": ")
        if group != "Overlap analysis" or row.end is None:
            continue
        rank = int(row.place.process.split()[1])
        for step, start, end in windows[rank]:
            found[rank, step, TRACKS[title]] += max(0, min(end, row.end) - max(start, row.start))
    return found


def made(shared: Path, directory: Path, *options: str) -> Path:
    """A job made up with these options."""
    tool = shared / "tools" / "gen_ascend.py"
    subprocess.run([sys.executable, tool, "--out", directory, *options], check=True, capture_output=True)
    return directory


def check(directory: Path, file: Path, steps: int) -> None:
    """Compare the sums of all ranks and steps."""
    expected, found = stated(directory), drawn(open_run(directory), file)
    assert len(expected) == steps * len(TRACKS)
    assert expected.keys() == found.keys()
    assert {key: ns - expected[key] for key, ns in found.items() if abs(ns - expected[key]) > ROUNDED_NS} == {}


@pytest.mark.parametrize("name", ["text_8rank", "db_8rank"])
@pytest.mark.parametrize("ending", ["json", "pftrace"])
def test_the_summary_of_eight_ranks_agrees_with_the_table_of_steps(
    shared: Path, tmp_path: Path, name: str, ending: str
) -> None:
    check(shared / "data/ascend" / name, tmp_path / f"own.{ending}", 8 * 3)


@pytest.mark.parametrize("form", ["text", "db"])
def test_it_agrees_with_pipeline_stages_and_other_faults(shared: Path, tmp_path: Path, form: str) -> None:
    options = ("--ranks", "4", "--pp", "2", "--steps", "2", "--first-step", "3", "--ops-per-step", "80", "--seed", "7")
    directory = made(shared, tmp_path / "job", "--format", form, *options, "--slow-compute", "1:2.5")

    check(directory, tmp_path / "own.json", 4 * 2)


def test_each_moment_of_a_step_is_of_one_kind(tmp_path: Path) -> None:
    kernels = KERNELS.frame(
        kernel=[0, 1],
        start_ns=[BASE_NS + 100, BASE_NS + 400],
        duration_ns=[100, 200],
        kind=["compute", "compute"],
        name=["MatMul", "Add"],
        stream=[1, 2],
        step=[1, 1],
    )
    calls = COLLECTIVES.frame(
        collective=[0],
        sequence=[0],
        start_ns=[BASE_NS + 150],
        duration_ns=[300],
        operation=["all_reduce"],
        name=["AllReduce"],
        on_device=[True],
        step=[1],
    )
    bounds = [BASE_NS], [BASE_NS + 1000]
    steps = STEPS.frame(
        step=[1],
        start_ns=bounds[0],
        end_ns=bounds[1],
        window_start_ns=bounds[0],
        window_end_ns=bounds[1],
        window=["stated"],
    )
    run = Run.from_frames({0: {"kernels": kernels, "collectives": calls, "steps": steps}})

    timeline = both(run, tmp_path, SUMMARY)

    ranges: dict[str, list[tuple[int, int | None]]] = defaultdict(list)
    for row in timeline.ranges:
        ranges[row.place.track.removeprefix("Overlap analysis: ")].append((row.start, row.end))
    assert {track: sorted(ranges[track]) for track in TRACKS} == {
        "Computing": [(100, 200), (400, 600)],
        "Communication": [(150, 450)],
        "Communication (not overlapped)": [(200, 400)],
        "Free": [(0, 100), (600, 1000)],
    }


def test_steps_of_which_no_computation_was_recorded_are_not_free(tmp_path: Path) -> None:
    starts = [BASE_NS, BASE_NS + 1000]
    ends = [start + 1000 for start in starts]
    steps = STEPS.frame(
        **{"step": [1, 2], "start_ns": starts, "end_ns": ends, "window_start_ns": starts, "window_end_ns": ends},
        **{"window": ["stated"] * 2, "recorded": [True, False]},
    )
    kernels = KERNELS.frame(
        **{"kernel": [0], "start_ns": starts[:1], "duration_ns": [500], "step": [1], "kind": ["compute"]},
        **{"name": ["MatMul"], "stream": [1]},
    )
    calls = COLLECTIVES.frame(
        **{"collective": [0, 1], "sequence": [0, 1], "start_ns": [start + 600 for start in starts]},
        **{"duration_ns": [100] * 2, "operation": ["all_reduce"] * 2, "name": ["AllReduce"] * 2, "step": [1, 2]},
        on_device=[True] * 2,
    )
    run = Run.from_frames({0: {"kernels": kernels, "collectives": calls, "steps": steps}})

    timeline = both(run, tmp_path, SUMMARY)

    ranges = sorted((row.place.track, row.start, row.end) for row in timeline.ranges if row.category == "overlap")
    assert ranges == [
        ("Overlap analysis: Communication", 600, 700),
        ("Overlap analysis: Communication", 1600, 1700),
        ("Overlap analysis: Communication (not overlapped)", 600, 700),
        ("Overlap analysis: Computing", 0, 500),
        ("Overlap analysis: Free", 500, 600),
        ("Overlap analysis: Free", 700, 1000),
    ]
