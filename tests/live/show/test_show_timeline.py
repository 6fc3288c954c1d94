"""Stored records as a timeline: nothing is dropped, and a viewer can show all of it."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from shown_jobs import slow_rank

from stepscope.cli import main
from stepscope.errors import StepscopeError
from stepscope.live.messages import Group, Hello
from stepscope.live.show import stored_ranges
from stepscope.live.show.event_types import VerdictOpened, VerdictOver, to_json
from stepscope.live.show.stored_ranges import files_for, ranges_in
from stepscope.live.show.timeline import Window, export, ranks_below
from stepscope.live.show.tracks import Lanes
from stepscope.live.store import RecordStore
from stepscope.live.store.lines import host_range, timed_range
from stepscope.recording_format.light_ranges import Assembler
from stepscope.selection import parse_selection

S, MS = 10**9, 10**6
T0 = 1_800_000_000 * S
CALL = json.dumps(
    {"streamId": "3", "count": "1024", "dataType": "bfloat16", "opName": "HcclAllReduce", "groupName": "g0"}
)


def record(base: Path, rank: int, *, steps: int = 5, calls: int = 2) -> int:
    """Record some steps of 100 ms; returns how many ranges."""
    store = RecordStore(base, "job-7", rank, limit_mb=1000, now_s=lambda: T0 / S)
    number, count = 0, 0
    for step in range(1, steps + 1):
        start = T0 + (step - 1) * 100 * MS
        made = [
            ("dataloader", start, start + 5 * MS),
            ("forward", start + 5 * MS, start + 40 * MS),
            (f"step {step}", start, start + 100 * MS),
        ]
        lines = ""
        for name, begin, end in made:
            number += 1
            if name == "forward":
                lines += timed_range(number, name, "default", begin, end, 9, 10, begin + MS, end + MS, 0, 7)
            else:
                lines += host_range(number, name, "default", begin, end, 9, 10)
        for call in range(calls):
            number += 1
            begin = start + (50 + call * 10) * MS
            # calls that overlap: each is longer than the distance between them
            lines += timed_range(
                number, CALL, "communication", begin, begin + 15 * MS, 9, 11, begin, begin + 16 * MS, 0, 3
            )
        store.write(lines)
        count += 3 + calls
    group = Group("g0", [0, 1, 10], "tp")
    store.write_groups([group], rank) if rank in group.members else None
    store.write_worker(Hello("job-7", rank, 9, f"node{rank}", T0))
    return count


def load(file: Path) -> dict[str, Any]:
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    trace: dict[str, Any] = json.loads(text)
    return trace


def check_nesting(trace: dict[str, Any]) -> None:
    """On each track, ranges follow one another or lie within one another, as viewers need it."""
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            start = round(event["ts"] * 1000)
            tracks.setdefault((event["pid"], event["tid"]), []).append((start, start + round(event["dur"] * 1000)))
    for ranges in tracks.values():
        around: list[int] = []
        for start, end in sorted(ranges, key=lambda one: (one[0], -one[1])):
            while around and around[-1] <= start:
                around.pop()
            assert not around or end <= around[-1]
            around.append(end)


def test_as_many_events_come_out_as_ranges_went_in(tmp_path: Path) -> None:
    counts = {rank: record(tmp_path, rank) for rank in (0, 1, 2, 10)}

    done = export(ranks_below(tmp_path / "job-7"), tmp_path / "t.json")
    trace = load(tmp_path / "t.json")
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]

    assert done.by_rank == counts
    assert done.ranges == sum(counts.values()) == 4 * 25
    # forward and calls are on the device as well
    assert len(events) == done.events == 4 * (25 + 5 + 10)
    assert Counter(event["name"] for event in events if event["pid"] == 10)["all_reduce"] == 20
    check_nesting(trace)


def test_processes_are_ranks_in_order_with_readable_names(tmp_path: Path) -> None:
    for rank in (0, 1, 10):
        record(tmp_path, rank)

    export(ranks_below(tmp_path / "job-7"), tmp_path / "t.json.gz")
    meta = [event for event in load(tmp_path / "t.json.gz")["traceEvents"] if event["ph"] == "M"]
    names = [event["args"]["name"] for event in meta if event["name"] == "process_name"]
    threads = {event["args"]["name"] for event in meta if event["name"] == "thread_name" and event["pid"] == 1}

    assert names == ["rank 0 (node0)", "rank 1 (node1)", "rank 10 (node10)"]
    assert threads == {
        "steps",
        "host thread 10",
        "device 0 stream 7",
        "communication: tp",
        "communication: tp (2)",
        "device 0 stream 3: tp",
        "device 0 stream 3: tp (2)",
    }


def test_times_have_one_base_and_calls_their_arguments(tmp_path: Path) -> None:
    for rank in (0, 1):
        record(tmp_path, rank, steps=1)

    export(ranks_below(tmp_path / "job-7"), tmp_path / "t.json")
    trace = load(tmp_path / "t.json")
    call = next(event for event in trace["traceEvents"] if event["name"] == "all_reduce")

    assert trace["baseTimeNanoseconds"] == T0
    assert (call["ts"], call["dur"]) == (50_000.0, 15_000.0)
    assert call["args"] == {
        "group": "g0",
        "ranks": [0, 1, 10],
        "group_size": 3,
        "size_bytes": 2048,
        "count": 1024,
        "data_type": "bfloat16",
    }
    assert min(event["ts"] for event in trace["traceEvents"] if event["ph"] == "X") == 0


def test_a_window_of_time_or_of_steps_is_exported(tmp_path: Path) -> None:
    record(tmp_path, 0, steps=20, calls=0)
    ranks = ranks_below(tmp_path / "job-7")

    by_time = export(ranks, tmp_path / "a.json", Window(T0 + 450 * MS, T0 + 550 * MS))
    by_step = export(ranks, tmp_path / "b.json", Window(steps=parse_selection("5-6", "steps")))

    names = [event["name"] for event in load(tmp_path / "a.json")["traceEvents"] if event["ph"] == "X"]
    assert sorted(set(names)) == ["dataloader", "forward", "step 5", "step 6"]
    assert by_time.ranges == 4
    steps = [event["name"] for event in load(tmp_path / "b.json")["traceEvents"] if "step " in event["name"]]
    assert {"step 5", "step 6"} <= set(steps)
    assert by_step.ranges == 6 + 2 + 1  # and what touches the window at its ends
    assert load(tmp_path / "b.json")["baseTimeNanoseconds"] == T0 + 300 * MS


def test_an_empty_window_is_an_error(tmp_path: Path) -> None:
    record(tmp_path, 0)

    with pytest.raises(StepscopeError, match="no ranges"):
        export(ranks_below(tmp_path / "job-7"), tmp_path / "t.json", Window(T0 + 3600 * S))
    assert list(tmp_path.glob("*t.json*")) == []


def test_verdicts_are_marked(tmp_path: Path) -> None:
    record(tmp_path, 2)
    opened = slow_rank(since_at_ns=T0 + 50 * MS)
    over = slow_rank(since_at_ns=T0 + 50 * MS, until_step=9, until_at_ns=T0 + 90 * MS)
    told = {"job": "job-7", "at_ns": T0, "headline": "Rank 2 computes slowly", "circumstances": "", "action": ""}
    file = tmp_path / "events.jsonl"
    events = [VerdictOpened(number=1, verdict=opened, **told), VerdictOver(number=2, verdict=over, **told)]
    file.write_bytes(b"".join(to_json(event) + b"\n" for event in events) + b"no json\n")

    out = tmp_path / "t.json"
    assert main(["live", "timeline", str(tmp_path / "job-7"), "-o", str(out), "--events", str(file)]) == 0
    marks = [event for event in load(out)["traceEvents"] if event["ph"] == "i"]

    assert [(mark["ts"], mark["pid"]) for mark in marks] == [(50_000.0, 2), (90_000.0, 2)]
    assert [mark["name"] for mark in marks] == ["Rank 2 computes slowly", "over: Rank 2 computes slowly"]


def test_damaged_records_cost_only_themselves(tmp_path: Path) -> None:
    count = record(tmp_path, 0)
    file = files_for(tmp_path / "job-7" / "0")[0]
    whole = file.read_bytes()
    lines = [
        b"",
        b"   ",
        b"{",
        b'{"Kind":1,"Flag":2,"Sou',
        b'{"Kind":"x"}',
        b"\xff\xfe",
        b'{"Kind":1,"Flag":4,"SourceKind":0,"Timestamp":5,"Id":900}',
        b'{"Kind":1,"Flag":2,"SourceKind":0,"Timestamp":1800000000000000000,"Id":901,"Name":"open","Domain":"default"}',
        b'{"Kind":1,"Flag":2,"SourceKind":0,"Timestamp":1,"Id":902,"Name":"' + b"n" * (1 << 21) + b'"}',
    ]
    file.write_bytes(b"\n".join(lines) + b"\n" + whole)

    done = export(ranks_below(tmp_path / "job-7"), tmp_path / "t.json")
    instants = [event["name"] for event in load(tmp_path / "t.json")["traceEvents"] if event["ph"] == "i"]

    assert done.ranges == count + 1
    assert (done.problems.bad_lines, done.problems.startless, done.problems.unended) == (5, 1, 1)
    assert instants == ["open (no end recorded)"]


def test_only_files_that_may_hold_the_window_are_read(tmp_path: Path) -> None:
    directory = tmp_path / "0"
    directory.mkdir()
    for second in (1000, 2000, 3000, 9000):
        (directory / str(second)).write_text(host_range(1, "forward", "default", second * S, second * S + 5, 1, 1))
    (directory / "parallel_group.json").touch()
    (directory / "4000").symlink_to(directory / "1000")

    assert [file.name for file in files_for(directory, 2500 * S, 2600 * S)] == ["2000", "3000"]
    assert [file.name for file in files_for(directory)] == ["1000", "2000", "3000", "9000"]


def test_files_are_read_in_blocks_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = record(tmp_path, 0)
    files = files_for(tmp_path / "job-7" / "0")

    found = []
    for block in (7, 100, 1 << 20):
        monkeypatch.setattr(stored_ranges, "BLOCK", block)
        found.append(list(ranges_in(files, Assembler())))

    assert len(found[0]) == count
    assert found[0] == found[1] == found[2]


def test_ranges_of_any_kind_fit_on_tracks() -> None:
    chance = random.Random(5)
    ranges = [(start := chance.randrange(5000), start + chance.randrange(300)) for _ in range(4000)]

    lanes, placed = Lanes(), dict[int, list[tuple[int, int]]]()
    for start, end in sorted(ranges, key=lambda one: (one[1], -one[0])):
        placed.setdefault(lanes.place(start, end), []).append((start, end))

    assert sum(map(len, placed.values())) == len(ranges)
    events = [
        {"ph": "X", "pid": 0, "tid": lane, "ts": start / 1000, "dur": (end - start) / 1000}
        for lane, on_lane in placed.items()
        for start, end in on_lane
    ]
    check_nesting({"traceEvents": events})


def test_a_track_forgets_old_ranges_but_stays_correct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepscope.live.show.tracks.MOST_KEPT", 8)
    lanes = Lanes()

    first = [lanes.place(start, start + 5) for start in range(0, 400, 10)]

    assert set(first) == {0}
    assert lanes.place(3, 1000) == 1  # began before what is remembered
    assert lanes.place(394, 1001) == 2


def test_hostile_names_are_json_and_nothing_else(tmp_path: Path) -> None:
    store = RecordStore(tmp_path, "job-7", 0, limit_mb=10)
    store.write(host_range(1, 'x"}\n\x00\u2028' + "n" * 5000, "default", T0, T0 + 5, 1, 1))
    store.write(host_range(2, '{"opName": [], "groupName": {"a": 1}}', "communication", T0, T0 + 5, 1, 1))
    store.write(host_range(3, "[" * 5000, "communication", T0, T0 + 5, 1, 1))

    done = export(ranks_below(tmp_path / "job-7"), tmp_path / "t.json")

    assert done.ranges == 3
    assert len([event for event in load(tmp_path / "t.json")["traceEvents"] if event["ph"] == "X"]) == 3


def test_the_command_exports_the_last_seconds_of_some_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank in (0, 1, 2):
        record(tmp_path, rank, steps=30, calls=0)
    monkeypatch.setenv("STEPSCOPE_LIVE_DIR", str(tmp_path))
    out = tmp_path / "t.json.gz"

    assert main(["live", "timeline", "job-7", "--last", "1s", "--ranks", "1-2", "-o", str(out)]) == 0

    names = {event["name"] for event in load(out)["traceEvents"] if event["ph"] == "X"}
    assert {"step 30", "step 21", "step 20"} <= names and "step 19" not in names
    assert "ranges of 2 ranks" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--last", "soon"], "Examples: 60s"),
        (["--last", "5s", "--from", "1"], "cannot be used with"),
        (["--from", "yesterday"], "2026-01-31T12:00:00"),
        (["--from", "5", "--to", "4"], "is before"),
        (["--ranks", "7"], "no records of rank 7"),
        (["--steps", "x"], "is not a number"),
        (["-o", "/nowhere/t.json"], "Check the path"),
    ],
)
def test_mistakes_are_explained(
    tmp_path: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path, 0)

    more = [] if "-o" in words else ["-o", str(tmp_path / "t.json")]

    assert main(["live", "timeline", str(tmp_path / "job-7"), *words, *more]) == 2
    assert told in capsys.readouterr().err


def test_a_directory_without_records_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STEPSCOPE_LIVE_DIR", str(tmp_path / "nothing"))
    record(tmp_path, 0)

    codes = [main(["live", "timeline", *words]) for words in (["no-job"], [], [str(tmp_path)])]
    told = capsys.readouterr().err

    assert codes == [2, 2, 2]
    assert "It holds these jobs: job-7" in told
