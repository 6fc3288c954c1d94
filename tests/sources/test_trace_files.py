"""Where trace files begin, as viewers count: by their first event, whatever is read of it."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import ascend_files
import pytest

from every_format import FORMATS
from recordings import EPOCH_NS, MS, Raw, op
from stepscope.run import Run, open_run
from stepscope.tables import TIMELINES
from tests.sources.test_kineto import Trace
from traces import RankTrace, Span, write_kineto


def begun(run: Run) -> list[tuple[str, int]]:
    """Names of trace files and what they show as zero, of all ranks."""
    rows = run.table(TIMELINES.name).collect().sort("rank", "zero_ns")
    return [(Path(file).name, zero) for file, zero in rows.select("file", "zero_ns").iter_rows()]


def test_it_is_the_first_event_though_nothing_else_is_read_of_it(tmp_path: Path) -> None:
    trace = Trace(baseTimeNanoseconds=5000).add("user_annotation", "ProfilerStep#1", 20, 50)
    trace.launch("a", 30, 40, 5, 1)
    trace.add("Trace", "PyTorch Profiler (0)", 3, 90, tid="Traces")
    trace.events.append({"ph": "M", "name": "process_name", "pid": 9, "ts": 1, "args": {"name": "python"}})
    trace.events.append({"ph": "s", "cat": "ac2g", "name": "ac2g", "pid": 9, "tid": 1, "ts": 2, "id": 1})

    rows = trace.read(tmp_path)[TIMELINES.name]

    assert rows.rows() == [(str(tmp_path / "trace.json"), 3_000 + 5_000)]


def test_samples_of_a_device_count_as_events(tmp_path: Path) -> None:
    directory = ascend_files.rank_directory(tmp_path)
    file = ascend_files.write_trace(directory) / "trace_view.json"
    events = json.loads(file.read_text())
    first = min(Decimal(event["ts"]) for event in events if event["ph"] in "XC")
    events.append({"ph": "C", "name": "AI Core Freq", "pid": 4, "tid": 0, "ts": str(first - 7), "args": {"MHz": 1800}})
    file.write_text(json.dumps(events))

    rows = ascend_files.read_text(directory)[TIMELINES.name]

    assert rows.rows() == [(str(file), round((first - 7) * 1000))]


def test_each_window_of_a_recording_has_a_file_on_the_clock_of_the_job(tmp_path: Path) -> None:
    raw = Raw(tmp_path, about={"clock": {"offset_ns": 3, "error_ns": 1}}).steps((1, 0, 10 * MS), (2, 50 * MS, 60 * MS))
    raw.kineto(0, 0, 10 * MS, [op("aten::mm", 1000.0, 500.0)])
    raw.kineto(1, 50 * MS, 60 * MS, [op("aten::mm", 51_000.0, 500.0)])

    run = open_run(tmp_path)

    shift = run.ranks[0].facts["clock_offset_ns"] or 0
    assert [zero - EPOCH_NS - shift for _, zero in begun(run)] == [1 * MS, 51 * MS]


@pytest.mark.parametrize("form", ["kineto", "ascend_text", "recording_torch"])
def test_every_rank_with_trace_files_has_them(tmp_path: Path, form: str) -> None:
    FORMATS[form](tmp_path)

    run = open_run(tmp_path)

    assert run.table(TIMELINES.name).collect()["rank"].unique().sort().to_list() == [rank.rank for rank in run.ranks]


def test_a_database_has_none(tmp_path: Path) -> None:
    FORMATS["ascend_db"](tmp_path)

    assert not open_run(tmp_path).has(TIMELINES.name)


def test_what_lies_far_from_the_rest_is_still_where_viewers_begin(tmp_path: Path) -> None:
    steps = [(1, Span("ProfilerStep#1", EPOCH_NS, 10 * MS))]
    work = [Span(f"aten::op{number}", EPOCH_NS + number * 1000, 500) for number in range(200)]
    stray = Span("aten::stray", EPOCH_NS - 10**18, 500)
    file = write_kineto(tmp_path, RankTrace(0, 1, steps, [*work, stray]))

    assert begun(open_run(file)) == [(file.name, EPOCH_NS - 10**18)]
