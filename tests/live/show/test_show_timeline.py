"""Stored records as a timeline: nothing is dropped, and a viewer can show all of it."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from shown_jobs import slow_rank

from stepscope.cli import main
from stepscope.live.messages import Group, Hello
from stepscope.live.show.event_types import VerdictOpened, VerdictOver, to_json
from stepscope.live.store import RecordStore
from stepscope.live.store.lines import host_range, timed_range
from stepscope.run import open_run
from stepscope.sources.light.moments import files_within, newest_ns
from stepscope.timeline import TimelineOptions, write_timeline

S, MS = 10**9, 10**6
PLAIN = TimelineOptions(explain=False)
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


def export(job: Path, out: Path, *words: str) -> list[dict[str, Any]]:
    """Run the command; the stored ranges in the file, on host and device, with the title of their track."""
    assert main(["live", "timeline", str(job), "-o", str(out), *words]) == 0
    events = load(out)["traceEvents"]
    titles = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    return [
        {**event, "track": title.removeprefix("Light trace: ")}
        for event in events
        if event["ph"] in "Xi" and (title := titles[event["pid"], event["tid"]]).startswith("Light trace: ")
    ]


def on_host(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ranges as they are stored, without those of the device that belong to them."""
    return [event for event in events if not event["cat"].startswith("device_")]


def check_nesting(events: list[dict[str, Any]]) -> None:
    """On each track, ranges follow one another or lie within one another, as viewers need it."""
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in events:
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


def test_each_stored_range_is_in_the_file_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = {rank: record(tmp_path, rank) for rank in (0, 1, 2, 10)}

    events = export(tmp_path / "job-7", tmp_path / "t.json")

    assert Counter(event["pid"] for event in on_host(events)) == counts
    # forward and calls are on the device as well
    assert len(events) == 4 * (25 + 5 + 10)
    assert Counter(event["name"] for event in events if event["pid"] == 10)["all_reduce"] == 20
    assert "100 ranges of 4 ranks" in capsys.readouterr().out
    check_nesting(load(tmp_path / "t.json")["traceEvents"])


def test_processes_are_ranks_in_order_with_readable_names(tmp_path: Path) -> None:
    for rank in (0, 1, 10):
        record(tmp_path, rank)

    events = export(tmp_path / "job-7", tmp_path / "t.json.gz")
    meta = [event for event in load(tmp_path / "t.json.gz")["traceEvents"] if event["ph"] == "M"]
    names = [event["args"]["name"] for event in meta if event["name"] == "process_name"]

    assert [name for name in names if name.startswith("rank")] == [
        "rank  0 (node0)",
        "rank  1 (node1)",
        "rank 10 (node10)",
    ]
    assert {event["track"] for event in events if event["pid"] == 1} == {
        "Steps",
        "Thread 10",
        "Device 0 stream 7",
        "Group tp (g0)",
        "Group tp (g0) (2)",
        "Device 0 stream 3: Group tp (g0)",
        "Device 0 stream 3: Group tp (g0) (2)",
    }


def test_times_have_one_base_and_calls_their_arguments(tmp_path: Path) -> None:
    for rank in (0, 1):
        record(tmp_path, rank, steps=1)

    events = export(tmp_path / "job-7", tmp_path / "t.json")
    call, on_device = [event for event in events if event["name"] == "all_reduce" and event["pid"] == 0][::2]
    arrows = [event for event in load(tmp_path / "t.json")["traceEvents"] if event["ph"] in "sf"]

    assert load(tmp_path / "t.json")["baseTimeNanoseconds"] == T0
    assert (call["ts"], call["dur"]) == (50_000.0, 15_000.0)
    known = {
        "step": 1,
        "group": "g0",
        "group_name": "tp",
        "ranks": "0,1,10",
        "group_size": 3,
        "size_bytes": 2048,
        "element_type": "bfloat16",
        "is_async": False,
    }
    assert call["args"] == known
    assert on_device["args"] == {**known, "after_host_start_ns": 0}
    assert min(event["ts"] for event in events) == 0
    assert Counter(event["ph"] for event in arrows) == {"s": 6, "f": 6}  # from host to device


def test_a_window_of_time_or_of_steps_is_exported(tmp_path: Path) -> None:
    record(tmp_path, 0, steps=20, calls=0)
    job = tmp_path / "job-7"

    by_time = export(job, tmp_path / "a.json", "--from", seconds(450), "--to", seconds(550))
    by_step = export(job, tmp_path / "b.json", "--steps", "5-6")

    assert sorted(event["name"] for event in on_host(by_time)) == ["dataloader", "forward", "step 5", "step 6"]
    assert Counter(event["name"] for event in on_host(by_step)) == {
        "dataloader": 2,
        "forward": 2,
        "step 5": 1,
        "step 6": 1,
    }
    assert load(tmp_path / "b.json")["baseTimeNanoseconds"] == T0 + 400 * MS


def seconds(ms: int) -> str:
    """A moment as the options take it."""
    return f"{T0 // S}.{ms:03d}"


def test_an_empty_window_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path, 0)

    for words in (["--from", str(T0 // S + 3600)], ["--steps", "77"]):
        assert main(["live", "timeline", str(tmp_path / "job-7"), "-o", str(tmp_path / "t.json"), *words]) == 2

    told = capsys.readouterr().err
    assert "time range" in told and "77" in told
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

    assert [(mark["ts"], mark["s"], mark["args"]["ranks"]) for mark in marks] == [
        (50_000.0, "g", "2"),
        (90_000.0, "g", "2"),
    ]
    assert [mark["name"] for mark in marks] == ["Rank 2 computes slowly", "over: Rank 2 computes slowly"]


def test_damaged_records_cost_only_themselves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = record(tmp_path, 0)
    file = next(each for each in (tmp_path / "job-7" / "0").iterdir() if each.name.isdecimal())
    whole = file.read_bytes()
    lines = [
        b"",
        b"   ",
        b"{",
        b'{"Kind":1,"Flag":2,"Sou',
        b'{"Kind":"x"}',
        b"\xff\xfe",
        b'{"Kind":1,"Flag":4,"SourceKind":0,"Timestamp":5,"Id":900}',
        b'{"Kind":1,"Flag":2,"SourceKind":0,"Timestamp":1800000000000000000,"Id":901,"MsptiObjectId":{"Pt":{"ProcessId":'
        b'9,"ThreadId":10}},"Name":"open","Domain":"default"}',
    ]
    file.write_bytes(whole + b"\n".join(lines) + b"\n")

    events = on_host(export(tmp_path / "job-7", tmp_path / "t.json"))
    told = capsys.readouterr().err

    assert len(events) == count + 1
    assert [event["name"] for event in events if event["ph"] == "i"] == ["open (no end recorded)"]
    assert "4 lines damaged" in told
    assert "1 range without a recorded start" in told and "1 range without a recorded end" in told


def test_ranges_that_are_open_and_marks_of_the_user_are_there(tmp_path: Path) -> None:
    store = RecordStore(tmp_path, "job-7", 0, limit_mb=10)
    store.write(host_range(1, "mine", "own domain", T0, T0 + 5 * MS, 9, 10))
    whole = host_range(2, "forward", "default", T0 + MS, T0 + 2 * MS, 9, 10)
    store.write(whole.splitlines(keepends=True)[0])

    alone = on_host(export(tmp_path / "job-7", tmp_path / "a.json"))
    store.write(host_range(3, "step 1", "default", T0, T0 + 9 * MS, 9, 10))
    events = on_host(export(tmp_path / "job-7", tmp_path / "b.json"))

    both = [("forward (no end recorded)", "i", "Thread 10"), ("mine", "X", "Thread 10")]
    assert sorted((event["name"], event["ph"], event["track"]) for event in alone) == both
    assert sorted((event["name"], event["ph"], event["track"]) for event in events) == [*both, ("step 1", "X", "Steps")]


def test_all_processes_of_a_rank_are_there(tmp_path: Path) -> None:
    counts = Counter[str]()
    for process, ranks in ((9, (0, 1, 2)), (11, (0, 1))):  # after the restart, one rank is missing
        for rank in ranks:
            store = RecordStore(tmp_path, "job-7", rank, limit_mb=10)
            for step in range(1, 6):
                start = T0 + process * S + step * 10 * MS
                store.write(host_range(2 * step, "forward", "default", start, start + MS, process, process))
                store.write(
                    host_range(2 * step + 1, f"step {step}", "default", start, start + 9 * MS, process, process)
                )
                counts[f"rank {rank} process {process}"] += 2
            store.close()

    events = on_host(export(tmp_path / "job-7", tmp_path / "t.json"))

    found = Counter(f"rank {event['pid']} {event['track'].partition(':')[0].lower()}" for event in events)
    assert sum(found.values()) == sum(counts.values()) == 50
    assert found["rank 0 process 9"] == found["rank 1 process 11"] == 10
    ranks = Counter(event["pid"] for event in events)
    assert ranks == {0: 20, 1: 20, 2: 10}
    assert {event["ts"] for event in events if event["pid"] == 2} < {
        event["ts"] for event in events if event["pid"] == 0
    }


def test_only_files_that_may_hold_the_window_are_read(tmp_path: Path) -> None:
    directory = tmp_path / "0"
    directory.mkdir()
    files = [directory / str(second) for second in (1000, 2000, 3000, 9000)]
    for file in files:
        start = int(file.name) * S
        file.write_text(host_range(1, "forward", "default", start, start + 5, 1, 1))

    assert [file.name for file in files_within(files, 2500 * S, 2600 * S)] == ["2000", "3000"]
    assert files_within(files, None, None) == files
    assert newest_ns(files) == 9000 * S + 5


def test_links_to_records_are_not_read_twice(tmp_path: Path) -> None:
    count = record(tmp_path, 0)
    file = next(each for each in (tmp_path / "job-7" / "0").iterdir() if each.name.isdecimal())
    (file.parent / "4000").symlink_to(file)

    assert len(on_host(export(tmp_path / "job-7", tmp_path / "t.json"))) == count


def test_hostile_names_are_json_and_nothing_else(tmp_path: Path) -> None:
    store = RecordStore(tmp_path, "job-7", 0, limit_mb=10)
    store.write(host_range(1, 'x"}\n\x00\u2028' + "n" * 5000, "default", T0, T0 + 5, 1, 1))
    store.write(host_range(2, '{"opName": [], "groupName": {"a": 1}}', "communication", T0, T0 + 5, 1, 1))
    store.write(host_range(3, "[" * 5000, "communication", T0, T0 + 5, 1, 1))

    events = export(tmp_path / "job-7", tmp_path / "t.json")

    assert [event["ph"] for event in events] == ["X"] * 3


def test_a_timeline_for_perfetto_has_the_same_ranges(tmp_path: Path) -> None:
    counts = {rank: record(tmp_path, rank) for rank in (0, 1)}

    assert main(["live", "timeline", str(tmp_path / "job-7"), "-o", str(tmp_path / "t.pftrace")]) == 0
    written = write_timeline(open_run([tmp_path / "job-7"], use_store=False), tmp_path / "u.pftrace", PLAIN)

    assert (tmp_path / "t.pftrace").read_bytes() == (tmp_path / "u.pftrace").read_bytes()
    found = [
        (rank, count) for (rank, family, kind), count in written.events.items() if family == "light" and "_" not in kind
    ]
    assert {rank: sum(count for of, count in found if of == rank) for rank in (0, 1)} == counts


def test_files_of_others_are_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path, 0)
    out = tmp_path / "notes.json"
    out.write_text("mine")

    assert main(["live", "timeline", str(tmp_path / "job-7"), "-o", str(out)]) == 2
    assert main(["live", "timeline", str(tmp_path / "job-7"), "-o", str(tmp_path / "job-7" / "0" / "t.json")]) == 2
    told = capsys.readouterr().err

    assert "--force" in told and "into which nothing is written" in told
    assert out.read_text() == "mine"


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
    assert main(["live", "timeline", "job-7", "-o", str(out), "--quiet"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--last", "soon"], "Examples: 60s"),
        (["--last", "5s", "--from", "1"], "cannot be used with"),
        (["--from", "yesterday"], "2026-01-31T12:00:00"),
        (["--from", "5", "--to", "4"], "is before"),
        (["--ranks", "7"], "no records of rank 7"),
        (["--steps", "x"], "is not a number"),
        (["-o", "/nowhere/t.json"], "there is no directory"),
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
