"""Damage in a raw recording costs what is damaged, and is told."""

from __future__ import annotations

import gzip
import json
from math import nan
from pathlib import Path

import polars as pl
import pytest
from test_recording import read

from recordings import EPOCH_NS, MS, Raw, op
from stepscope.recording_format.rows import MARKS
from stepscope.sources.recording import lines
from stepscope.store import MemorySink

MARK = f"step,{{}},{EPOCH_NS},{EPOCH_NS + 9},1,1,\n"


def issues(tables: dict[str, pl.DataFrame]) -> list[tuple[str, str, int | None]]:
    """Severity, name of the file and rows lost."""
    rows = tables["issues"].select("severity", "file", "lost").rows() if "issues" in tables else []
    return [(severity, Path(file).name, lost) for severity, file, lost in rows]


def test_a_line_that_was_cut_off_is_dropped_in_silence(tmp_path: Path) -> None:
    raw = Raw(tmp_path).steps((1, 0, 10), (2, 10, 20))
    path = raw.directory / "marks.csv"
    path.write_bytes(path.read_bytes() + f"step,3,{EPOCH_NS + 20},{EPOCH_NS + 2}".encode())

    tables, _ = read(raw)

    assert tables["steps"]["step"].to_list() == [1, 2]
    assert issues(tables) == []


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b"step,2,xx,yy,2,1,",
        b"step,2,9223372036854775808,9223372036854775809,2,1,",
        "step,2,٣,٤,2,1,".encode(),
        b"step,2,--5,-4,2,1,",
        b"\0" * 40,
        b'range,"open,1,2,3,4,',
        b"step,2,17900",
        b"\xff\xfe,\x80",
        b"",
    ],
)
def test_a_damaged_line_costs_itself(tmp_path: Path, line: bytes) -> None:
    raw = Raw(tmp_path).steps((1, 0, 10))
    path = raw.directory / "marks.csv"
    path.write_bytes(path.read_bytes() + line + b"\n")
    raw.mark("range", 'a "quoted",\nname', 2, 4).steps((3, 20, 30))

    tables, _ = read(raw)

    assert tables["steps"]["step"].to_list() == [1, 3]
    assert 'a "quoted",\nname' in tables["slices"]["name"].to_list()
    assert issues(tables) == ([("warning", "marks.csv", 1)] if line else [])


@pytest.mark.parametrize("block", [40, 64, 100, 333])
def test_a_file_is_the_same_however_it_is_cut_into_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    raw = Raw(tmp_path)
    for number in range(30):
        raw.mark("range", f'{number}\n"x",\n' if number % 3 else str(number), number, number + 1)
    raw.add("marks", ["damaged"])
    raw.mark("range", "last", 99, 100)
    sink, cut_sink = MemorySink("x"), MemorySink("x")
    whole = lines.read_all_rows(raw.directory, MARKS, sink.issue)
    monkeypatch.setattr(lines, "BLOCK_BYTES", block)

    cut = lines.read_all_rows(raw.directory, MARKS, cut_sink.issue)

    assert whole.height == 31
    assert cut.equals(whole)
    assert cut_sink.close()["issues"].equals(sink.close()["issues"])


def test_marks_with_impossible_times_are_left_out(tmp_path: Path) -> None:
    raw = Raw(tmp_path).steps((1, 0, 10)).mark("data", "x", 9, 5).mark("data", "x", 0, 10**15)

    tables, _ = read(raw)

    assert tables["slices"]["name"].to_list() == ["ProfilerStep#1"]
    assert issues(tables) == [("warning", "marks.csv", 2)]


def test_missing_marks_leave_the_windows(tmp_path: Path) -> None:
    raw = Raw(tmp_path).kineto(0, 0, 10_000, [op("aten::mm", 1, 2)])

    tables, _ = read(raw)

    assert tables["operators"].height == 1
    assert tables["steps"]["window"].to_list() == ["recording"]


def test_windows_that_cannot_be_read_do_not_hide_the_others(tmp_path: Path) -> None:
    raw = Raw(tmp_path).steps((1, 0, 100_000))
    events = [op("aten::add", n, 0.5) for n in range(3000)]
    whole = json.dumps({"baseTimeNanoseconds": EPOCH_NS, "traceEvents": events}).encode()
    raw.window(0, 0, 9, "kineto", {"trace.json.gz": gzip.compress(whole)[:-3000]})
    raw.window(1, 9, 19, "kineto", {"trace.json.gz": b"no gzip"})
    raw.window(2, 19, 29, "kineto", {"trace.json.gz": b""})
    raw.window(3, 29, 39, "kineto", {"trace.json.gz": b"x"})
    (raw.directory / "windows" / "000003" / "trace.json.gz").unlink()
    raw.window(4, 39, 49, "kineto", {}, state="failed")
    raw.window(5, 49, 59, "unheard_of", {"x": b""})
    raw.add("windows", [6, EPOCH_NS, EPOCH_NS, 1, 1, "kineto", "complete", "../000007/trace.json.gz;/etc/passwd"])
    raw.kineto(7, 69, 100_000, [op("aten::mm", 70, 2)])

    tables, _ = read(raw)

    assert tables["operators"].filter(pl.col("name") == "aten::mm").height == 1
    assert 0 < tables["operators"].filter(pl.col("name") == "aten::add").height < 3000
    assert [severity for severity, *_ in issues(tables)] == [*["error"] * 4, "warning", "warning"]


def test_a_window_whose_time_base_is_no_number_begins_with_its_first_event(tmp_path: Path) -> None:
    raw = Raw(tmp_path)
    for number in (0, 1):
        trace = {"baseTimeNanoseconds": nan, "traceEvents": [op("aten::mm", 5 + 10 * number, 2)]}
        raw.window(number, 10_000 * number, 10_000 * (number + 1), "kineto", {"trace.json": json.dumps(trace).encode()})

    tables, _ = read(raw)

    assert tables["operators"]["start_ns"].to_list() == [EPOCH_NS, EPOCH_NS + 10_000]
    problem = (
        "the time base of the trace, 'NaN', is not a whole number of ns in 64 bits; it is guessed from the windows"
    )
    assert tables["issues"]["problem"].to_list() == [problem] * 2
    assert {Path(file).name for file in tables["issues"]["file"]} == {"trace.json"}


def test_a_damaged_recording_json_is_told(tmp_path: Path) -> None:
    raw = Raw(tmp_path).steps((1, 0, 10))
    (raw.directory / "recording.json").write_text('{"format": "stepscope-recording", "vers')

    from stepscope.errors import NothingReadable
    from stepscope.run import open_runs

    with pytest.raises(NothingReadable, match="is cut off or damaged"):
        open_runs(tmp_path, use_store=False)


def test_values_of_any_kind_in_recording_json_do_no_harm(tmp_path: Path) -> None:
    odd = {
        "rank": "zero",
        "world_size": [],
        "host": 5,
        "groups": [{"group": 0, "members": "x"}, 7],
        "clock": {"offset_ns": "later"},
        "spans": [[None, 1], [EPOCH_NS], "x", [EPOCH_NS + 5 * MS, None]],
        "problems": {},
        "options": 3,
        "epoch_shift_ns": None,
    }
    raw = Raw(tmp_path, about=odd).steps((1, 0, 10))

    tables, facts = read(raw)

    assert tables["steps"].height == 1
    assert (facts["rank"], facts["rank_origin"], facts["world_size"]) == (0, "file name", None)


def test_a_cut_trace_that_lost_its_time_base_takes_that_of_the_others(tmp_path: Path) -> None:
    raw = Raw(tmp_path).steps((1, 0, 90_000))
    cut = b'{"traceEvents": [' + json.dumps(op("aten::add", 5, 2)).encode() + b', {"ph": "X"'
    raw.window(0, 3_000, 9_000, "kineto", {"trace.json": cut})
    raw.kineto(1, 10_000, 20_000, [op("aten::mm", 12, 2)])
    raw.window(2, 30_000, 40_000, "kineto", {"trace.json": cut.replace(b'"ts": 5', b'"ts": 35')})

    tables, _ = read(raw)

    starts = tables["operators"].sort("start_ns").select(pl.col("start_ns") - EPOCH_NS).to_series().to_list()
    assert starts == [3_000, 12_000, 35_000]
    assert sorted(severity for severity, *_ in issues(tables)) == ["error", "error", "warning"]


@pytest.mark.parametrize("number", ["9223372036854775808", "", "x", "-9223372036854775809"])
def test_a_window_without_a_number_is_a_damaged_line(tmp_path: Path, number: str) -> None:
    raw = Raw(tmp_path).steps((1, 0, 10 * MS))
    raw.kineto(0, 0, 10 * MS, [op("aten::mm", 1, 5)])
    path = raw.directory / "windows.csv"
    header, row = path.read_text().splitlines()
    path.write_text(f"{header}\n{row}\n{number}{row[1:]}\n")

    tables, _ = read(raw)

    assert tables["operators"]["name"].to_list() == ["aten::mm"]
    assert issues(tables) == [("warning", "windows.csv", 1)]
