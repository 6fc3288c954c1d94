"""What was recorded is what a timeline holds, event by event and category by category, in each format."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from reading import Timeline, read
from runs import both

from every_format import FORMATS, SHARED
from stepscope.run import Run, open_run
from stepscope.tables import MEMORY_CURVE
from stepscope.timeline import TimelineOptions, Written, write_timeline

PLAIN = TimelineOptions(explain=False, align=False)
KINETO = {
    "cpu_op": "operator",
    "operator": "operator",
    "user_annotation": "annotation",
    "gpu_user_annotation": "device_annotation",
    "python_function": "python",
    "cuda_runtime": "runtime",
    "cuda_driver": "runtime",
    "runtime": "runtime",
    "kernel": "kernel",
    "gpu_memcpy": "memory",
    "gpu_memset": "memory",
    "memcpy": "memory",
    "memset": "memory",
    "overhead": "overhead",
    "trace": "other",
}
"""Categories of Kineto's events to ours; some kernels are communication."""
TRACES = (
    "cpu_gloo_4rank_straggler_r2/rank-1.1795228830230.pt.trace.json.gz",
    "dlrm_8rank_v100/worker3_step_12.1694128201557.pt.trace.json.gz",
    "sampled_2of128/sampled_rank-0.json.gz",
    "single/b200_eager_trace.json.gz",
    "single/rank-70.large_integer.pt.trace.json.gz",
    "single/triton_example.json.gz",
)


def timeline_of(path: Path, folder: Path) -> tuple[Run, Written, Timeline]:
    """A recording and its timeline."""
    run = open_run([path])
    made = write_timeline(run, folder / "a.pftrace", PLAIN)
    found = read(made.file)
    assert len(found) == made.total_events
    assert found.is_whole
    return run, made, found


def lacking(run: Run, found: Timeline, base_ns: int) -> dict[str, int]:
    """How many rows of each table with ranges are not in the timeline, by rank, start and length."""
    drawn = Counter((_rank(each.place.process), each.start, each.end - each.start) for each in _ranges(found))
    lacks = {}
    for name in ("slices", "kernels", "collectives", "communication_tasks", "host_events"):
        if not run.has(name):
            continue
        rows = run.table(name).select("rank", "start_ns", "duration_ns").collect()
        rows = rows.with_columns(pl.col("start_ns") - base_ns)
        wanted = Counter(rank_start_length for rank_start_length in rows.iter_rows() if None not in rank_start_length)
        lacks[name] = (wanted - drawn).total()
    return lacks


def _ranges(found: Timeline) -> Iterator[Any]:
    return (each for each in found.ranges if each.place.process.startswith("rank"))


def _rank(process: str) -> int:
    return int(process.removeprefix("rank").split()[0])


def check_whole(path: Path, folder: Path) -> None:
    """Check that all rows of a recording are drawn, and in both forms."""
    run, made, found = timeline_of(path, folder)
    if made.notes:  # some tables are of another clock
        return
    assert set(lacking(run, found, made.base_ns).values()) <= {0}
    assert made.left_out == {}
    for rank in run.ranks:
        for table, family in (("counters", "counters"), ("host_events", "host_events"), ("collectives", None)):
            if family and rank.has(table):
                kept = run.table(table).filter(pl.col("rank") == rank.rank).select(pl.len()).collect().item()
                assert (
                    sum(count for (of, own, _), count in made.events.items() if (of, own) == (rank.rank, family))
                    == kept
                )


@pytest.mark.parametrize("name", FORMATS)
def test_all_that_was_recorded_is_drawn(name: str, tmp_path: Path) -> None:
    FORMATS[name](tmp_path / "job")
    (tmp_path / "out").mkdir()

    check_whole(tmp_path / "job", tmp_path / "out")
    both(open_run([tmp_path / "job"]), tmp_path / "out")


@pytest.mark.parametrize(
    "name", [*SHARED[1:], "mindspore/synthetic_dp4", "mindspore/synthetic_gpu1", "mindspore/real_run1_widedeep_lenet"]
)
def test_all_of_recordings_of_mindspore_is_drawn(name: str, shared: Path, tmp_path: Path) -> None:
    check_whole(shared / "data" / name, tmp_path)


@pytest.mark.parametrize("name", TRACES)
def test_events_of_kineto_by_category(name: str, shared: Path, tmp_path: Path) -> None:
    file = shared / "data" / "pytorch" / name
    events = json.loads(gzip.decompress(file.read_bytes()), strict=False)["traceEvents"]
    recorded = Counter(KINETO[event["cat"].lower()] for event in events if event["ph"] == "X")

    _, made, _ = timeline_of(file, tmp_path)

    drawn = Counter[str]()
    for (_, family, category), count in made.events.items():
        if family in ("host", "device"):
            drawn["kernel" if category == "communication" else category] += count
        if (family, category) == ("communication", "communication"):  # a call that no stream shows
            drawn["kernel"] += count
    assert drawn == recorded


def test_events_of_an_ascend_text_by_process(shared: Path, tmp_path: Path) -> None:
    (directory,) = (shared / "data" / "ascend" / "text_8rank").glob("*_430002_*")
    (file,) = directory.rglob("trace_view.json")
    events = json.loads(file.read_bytes())
    processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    recorded = Counter(processes[event["pid"]] for event in events if event["ph"] in "XC")

    _, made, _ = timeline_of(directory, tmp_path)

    drawn = made.events
    assert recorded["Python"] == sum(drawn[2, "host", each] for each in ("operator", "annotation", "queue"))
    assert recorded["CANN"] == drawn[2, "host", "runtime"]
    assert recorded["Ascend Hardware"] == drawn[2, "device", "kernel"] + drawn[2, "device", "memory"]
    calls, tasks = drawn[2, "communication", "communication"], drawn[2, "device", "communication_task"]
    assert recorded["Communication"] == calls + tasks
    assert recorded["Overlap Analysis"] == drawn[2, "overlap", "overlap"]
    assert recorded["AI Core Freq"] == drawn[2, "counters", "counter"]


def test_events_of_an_ascend_database_by_table(shared: Path, tmp_path: Path) -> None:
    (directory,) = (shared / "data" / "ascend" / "db_8rank").glob("*_430002_*")
    (file,) = directory.rglob("ascend_pytorch_profiler_*.db")
    with sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True) as database:
        tables = ("TASK", "COMMUNICATION_OP", "CANN_API", "PYTORCH_API", "MSTX_EVENTS", "AICORE_FREQ")
        recorded = {name: database.execute(f"select count(*) from {name}").fetchone()[0] for name in tables}
    database.close()

    _, made, _ = timeline_of(directory, tmp_path)

    of = Counter[str]()
    for (_, family, category), count in made.events.items():
        of[family] += count
        of[f"{family}: {category}"] += count
    assert recorded["TASK"] == of["device"]
    assert recorded["COMMUNICATION_OP"] == of["communication"]
    assert recorded["CANN_API"] == of["host: runtime"]
    assert recorded["PYTORCH_API"] + recorded["MSTX_EVENTS"] == of["host: operator"] + of["host: annotation"]
    assert recorded["AICORE_FREQ"] == of["counters"]


def test_changes_of_memory_without_amounts_are_summed_up(tmp_path: Path) -> None:
    curve = MEMORY_CURVE.frame(
        time_ns=[1, 2, 3, 4],
        change_bytes=[100, 50, -100, 7],
        component=["host"] * 3 + ["other"],
        allocated_bytes=[None, None, None, 70],
    )

    found = both(Run.from_frames({0: {"memory_curve": curve}}), tmp_path)

    values: dict[str, list[float]] = {}
    for each in found.samples:
        values.setdefault(each.place.track, []).append(each.value)
    assert sorted(values.values()) == [[70], [100, 150, 50]]
    assert any(track.endswith("allocated since the start (bytes)") for track in values)
