"""Trace events are read exactly, whatever the file's layout, size of chunks or damage."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepscope.errors import UnreadableInput
from stepscope.sources.trace_events.base import Arg, EventClass, Layout
from stepscope.sources.trace_events.chunks import CHUNK_BYTES
from stepscope.sources.trace_events.columns import times_ns
from stepscope.sources.trace_events.reader import TraceEvents
from stepscope.store import MemorySink
from stepscope.tables import ISSUES

ARGS = (
    Arg("n", "n", "int"),
    Arg("N", "n", "int"),
    Arg("x", "x", "float"),
    Arg("label", "label", "text"),
    Arg("dims", "dims", "json"),
)
LAYOUT = Layout(
    (
        EventClass("special", frozenset({"X"}), frozenset({"op"}), ARGS[:1], names=frozenset({"special"})),
        EventClass("op", frozenset({"X"}), frozenset({"op"}), ARGS),
        EventClass("flow", frozenset({"s", "f"}), frozenset({"fwdbwd"})),
        EventClass("rest", frozenset({"X"}), None),
    )
)


class Reading:
    """All events of a file with some content, by class, with what was reported."""

    def __init__(self, directory: Path, content: str | bytes, chunk_bytes: int = CHUNK_BYTES, workers: int = 1) -> None:
        path = directory / "trace.json"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        sink = MemorySink("x", workers)
        self.events = TraceEvents(path, LAYOUT, sink, chunk_bytes)
        frames: dict[str, list[pl.DataFrame]] = {}
        for batch in self.events:
            for name, frame in batch.items():
                frames.setdefault(name, []).append(frame)
        self.frames = {name: pl.concat(parts) for name, parts in frames.items()}
        reported = sink.close().get("issues", ISSUES.frame())
        self.issues = reported.select("severity", "problem", "lost").rows()
        self.places = reported["place"].to_list()

    def names(self, cls: str = "op") -> list[str]:
        return self.frames[cls]["name"].to_list() if cls in self.frames else []


def op(name: str, ts: float | str = 1.5, dur: Any = 2, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "op", "name": name, "pid": 1, "tid": 2, "ts": ts, "dur": dur, "args": args}


def wrapped(events: str) -> str:
    return '{"schemaVersion": 1, "traceEvents": [' + events + '], "traceName": "t"}'


def test_times_are_exact_to_the_ns(tmp_path: Path) -> None:
    times = ["1712195495502094.541", '"1760000000000407.841"', "17", "-1.5", "1.7e3", "0.0009"]
    beyond = ["1e999999", "9e18", "-1e17", '"x"']
    events = ",".join(f'{{"ph":"X","cat":"op","name":"a","ts":{t},"dur":0.5}}' for t in times + beyond)

    frame = Reading(tmp_path, wrapped(events)).frames["op"]

    starts = [1712195495502094541, 1760000000000407841, 17000, -1500, 1_700_000, 0]
    assert frame["start_ns"].to_list() == starts
    assert frame["duration_ns"].to_list() == [500] * 6


def test_arguments_become_typed_columns(tmp_path: Path) -> None:
    events = [
        op("a", n=1, x=1, label="l", dims=[[1, 2], []]),
        op("b", N="7", x="0.5", label=3, dims="[2]"),
        op("c", n=10159970886766084423, x=[1], label=None, dims=None),
        {**op("d"), "args": None},
    ]

    frame = Reading(tmp_path, wrapped(json.dumps(events)[1:-1])).frames["op"]

    assert frame["n"].to_list() == [1, 7, None, None]
    assert frame["x"].to_list() == [1.0, 0.5, None, None]
    assert frame["label"].to_list() == ["l", "3", None, None]
    assert frame["dims"].to_list() == ["[[1, 2], []]", "[2]", None, None]


def test_events_go_to_the_first_class_that_takes_them(tmp_path: Path) -> None:
    events = [
        {**op("a"), "cat": "OP"},
        op("special", n=4),
        {**op("kernel"), "cat": "kernel"},
        {"ph": "s", "cat": "fwdbwd", "id": 7, "ts": 1, "name": "f"},
        {"ph": "s", "cat": "ac2g", "id": 7, "ts": 1, "name": "f"},
    ]

    reading = Reading(tmp_path, json.dumps(events))

    assert reading.names() == ["a"]
    assert reading.names("special") == ["special"]
    assert reading.names("rest") == ["kernel"]
    assert reading.frames["flow"]["id"].to_list() == ["7"]
    assert sum(frame.height for frame in reading.frames.values()) == 4  # all but the flow of no class


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize("packed", [False, True])
def test_keys_on_both_sides_of_the_events_make_the_header(tmp_path: Path, indent: int | None, packed: bool) -> None:
    props = [{"id": 0, "name": "GPU"}, {"id": 1, "name": "GPU"}]
    document = {"deviceProperties": props, "traceEvents": [op("a"), op("b")], "after": {"more": props}, "base": 5}
    text = json.dumps(document, indent=indent).encode()

    reading = Reading(tmp_path, gzip.compress(text) if packed else text)

    assert reading.names() == ["a", "b"]
    assert reading.events.header == {"deviceProperties": props, "after": {"more": props}, "base": 5}
    assert reading.issues == []


def test_keys_before_the_events_may_be_longer_than_what_is_read_first(tmp_path: Path) -> None:
    long = "x" * 200_000
    reading = Reading(tmp_path, json.dumps({"environment": long, "traceEvents": [op("a"), op("b")], "after": 1}))
    assert reading.names() == ["a", "b"]
    assert reading.events.header == {"environment": long, "after": 1}


@pytest.mark.parametrize("text", ["[]", '{"traceEvents": []}', '{"traceEvents":[ ] , "a":1}', "[ \n"])
def test_a_trace_without_events_gives_none(tmp_path: Path, text: str) -> None:
    reading = Reading(tmp_path, text)

    assert reading.frames == {}
    assert reading.issues == []


@pytest.mark.parametrize(
    "text", ["", "   ", "not json", "ab" * 40_000, '{"a": 1}', '{"traceEvents": 3}', '{"x": {"traceEvents": [1]}}']
)
def test_what_is_no_trace_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnreadableInput, match=r"trace\.json"):
        Reading(tmp_path, text)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match="gone"):
        list(TraceEvents(tmp_path / "gone.json", LAYOUT, MemorySink("x")))


EVENTS = [
    op("plain"),
    op("nested", dims=[{"name": "x", "id": 1}, {"name": "y", "id": 2}], label='},{"name": "no"'),
    op('escaped " \\ } , { é', label="a\nb"),
    {"name": "special", "ph": "X", "cat": "op", "ts": "5.25", "dur": 1},
    {"ph": "f", "cat": "fwdbwd", "name": "f", "id": "0x1", "ts": 3},
]


@given(
    picks=st.lists(st.integers(0, len(EVENTS) - 1), max_size=30),
    chunk_bytes=st.integers(1, 3000),
    indent=st.sampled_from([None, 0, 2]),
    bare=st.booleans(),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_chunks_of_any_size_give_the_same_events(
    tmp_path: Path, picks: list[int], chunk_bytes: int, indent: int | None, bare: bool
) -> None:
    events = [{**EVENTS[i], "pid": number} for number, i in enumerate(picks)]
    trailer = {"tail": [{"name": "t", "ph": 1}, {"name": "u", "ph": 2}]}
    text = json.dumps(events if bare else {"traceEvents": events, **trailer}, indent=indent)

    whole, cut = Reading(tmp_path, text), Reading(tmp_path, text, chunk_bytes=chunk_bytes)

    assert whole.issues == cut.issues == []
    assert {n: f.to_dicts() for n, f in whole.frames.items()} == {n: f.to_dicts() for n, f in cut.frames.items()}
    assert sum(f.height for f in cut.frames.values()) == len(picks)
    assert whole.events.header == cut.events.header


DIRT = {
    "NaN": '"n": NaN, "x": -Infinity',
    "raw control character": '"label": "a\tb\x01"',
    "bad escape": r'"label": "C:\dir\x"',
    "trailing comma": '"n": 1,',
}


@pytest.mark.parametrize("dirt", DIRT.values(), ids=DIRT.keys())
@pytest.mark.parametrize("chunk_bytes", [1, 100, 1 << 20])
def test_repairable_dirt_costs_no_event(tmp_path: Path, dirt: str, chunk_bytes: int) -> None:
    dirty = '{"ph":"X","cat":"op","name":"dirty","ts":1,"dur":1,"args":{' + dirt + "}}"
    text = wrapped(",\n".join([json.dumps(op("before")), dirty, json.dumps(op("after"))]))

    reading = Reading(tmp_path, text, chunk_bytes=chunk_bytes)

    assert reading.names() == ["before", "dirty", "after"]
    assert reading.issues == []


def test_bytes_that_are_not_utf8_are_replaced(tmp_path: Path) -> None:
    text = wrapped(json.dumps(op("before")) + "," + json.dumps(op("QQ"))).encode().replace(b"QQ", b"a\xff\xfeb")

    reading = Reading(tmp_path, text)

    assert reading.names() == ["before", "a��b"]


BROKEN = {
    "odd quote": '{"ph":"X","cat":"op","name":"a "b","ts":1,"dur":1}',
    "even quotes": '{"ph":"X","cat":"op","name":"a "b" c","ts":1,"dur":1}',
    "no value": '{"ph":"X","cat":"op","name":"a","ts":,"dur":1}',
    "wrong type": '{"ph":"X","cat":"op","name":{"a":1},"ts":1,"dur":1}',
    "deep": '{"ph":"X","cat":"op","name":"a","ts":1,"dur":1,"args":{"dims":' + "[" * 5000 + "]" * 5000 + "}}",
    "unclosed": '{"ph":"X","cat":"op","name":"a","ts":1,"args":{"n":[1}',
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.parametrize("chunk_bytes", [1, 150, 1 << 20])
def test_a_broken_event_costs_itself_only(tmp_path: Path, broken: str, chunk_bytes: int) -> None:
    good = [json.dumps(op(f"g{i}")) for i in range(6)]
    text = wrapped(", ".join([*good[:3], broken, *good[3:]]))

    reading = Reading(tmp_path, text, chunk_bytes=chunk_bytes)

    assert reading.names() == [f"g{i}" for i in range(6)]
    assert [(severity, lost) for severity, _, lost in reading.issues] == [("warning", 1)]


@pytest.mark.parametrize(
    ("broken", "problem", "place"),
    [
        ('{"ph":"X","cat":"op","name":"a","ts":1,"dur":1,"args":[1]}', "of the wrong type", "$.args"),
        ('{"ph":"X","cat":"op","name":true,"ts":1,"dur":1}', "of the wrong type", "$.name"),
        (BROKEN["no value"], "1 event left out: not valid JSON", "byte "),
        (BROKEN["deep"], "1 event left out: nested too deeply", "byte "),
    ],
)
def test_what_is_wrong_with_an_event_is_told_with_its_place(
    tmp_path: Path, broken: str, problem: str, place: str
) -> None:
    reading = Reading(tmp_path, wrapped(", ".join([json.dumps(op("a")), broken, json.dumps(op("b"))])))

    assert problem in reading.issues[0][1]
    assert place in (reading.places[0] or "")


@pytest.mark.parametrize(
    "between", ["/* a comment */ ", "\ufeff", "\u00a0", ", ", "17, ", 'WARNING: "odd" line\n', "}, "], ids=repr
)
def test_text_between_events_is_no_lost_event(tmp_path: Path, between: str) -> None:
    events = [json.dumps(op(f"g{i}")) for i in range(4)]
    text = wrapped(", ".join([*events[:2], between + events[2], events[3]]))

    reading = Reading(tmp_path, text)

    assert reading.names() == ["g0", "g1", "g2", "g3"]
    assert reading.issues == [("note", "text between events is left out", 0)]
    assert reading.places == [f"byte {text.index(between + events[2])}"]


def test_halves_of_surrogate_pairs_are_replaced_and_whole_ones_kept(tmp_path: Path) -> None:
    names = [r"\ud800", r"x\udfffy", r"\ud83d\ude00", r"\ud83d\ud83d\ude00", r"\\ud800", r"\uD800\u0041"]
    events = ",".join(f'{{"ph":"X","cat":"op","name":"{name}","ts":1,"dur":1}}' for name in names)

    reading = Reading(tmp_path, wrapped(events))

    assert reading.names() == ["\ufffd", "x\ufffdy", "😀", "\ufffd😀", r"\ud800", "\ufffdA"]
    assert reading.issues == []


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ('"deep": ' + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ('"a": 1 2, "text": "\\"traceEvents\\": ["', "not valid JSON"),
    ],
)
def test_events_are_read_even_if_the_keys_before_them_cannot(tmp_path: Path, header: str, reason: str) -> None:
    text = f'{{{header}, "traceEvents": [{json.dumps(op("a"))}], "after": 1}}'

    reading = Reading(tmp_path, text)

    assert reading.names() == ["a"]
    assert reading.events.header == {"after": 1}
    assert [severity for severity, _, _ in reading.issues] == ["warning"]
    assert reason in reading.issues[0][1]


def test_keys_after_the_events_that_cannot_be_read_are_reported(tmp_path: Path) -> None:
    reading = Reading(tmp_path, f'{{"a": 1, "traceEvents": [{json.dumps(op("a"))}], "after": 1 2}}')

    assert reading.names() == ["a"]
    assert "keys after the list of events cannot be read" in reading.issues[0][1]


def test_a_list_that_ends_within_an_event_is_called_cut(tmp_path: Path) -> None:
    reading = Reading(tmp_path, json.dumps([op("a"), op("b")])[:-20])

    assert reading.names() == ["a"]
    assert [severity for severity, _, _ in reading.issues] == ["error"]
    assert "ends inside the list of events" in reading.issues[0][1]


def test_log_lines_between_events_are_stepped_over(tmp_path: Path) -> None:
    events = [json.dumps(op(f"g{i}")) for i in range(4)]
    text = wrapped(f"{events[0]}, {events[1]}\nWARNING: odd line\n, {events[2]}, {events[3]}")

    reading = Reading(tmp_path, text)

    assert reading.names() == ["g0", "g1", "g2", "g3"]


def test_durations_that_cannot_be_true_are_left_out_and_counted(
    tmp_path: Path,
) -> None:
    durations = [1, None, -1, -5, 8 * 24 * 3600 * 1e6, "2.5", "x"]
    events = [op(f"d{i}", dur=d) for i, d in enumerate(durations)]
    del events[1]["dur"]
    events.append({**op("no time"), "ts": None})

    reading = Reading(tmp_path, json.dumps(events))

    assert reading.names() == ["d0", "d5"]
    assert reading.frames["op"]["duration_ns"].to_list() == [1000, 2500]
    assert sorted(lost or 0 for _, _, lost in reading.issues) == [1, 1, 1, 3]


@pytest.mark.parametrize("bare", [False, True])
def test_a_file_cut_anywhere_keeps_all_complete_events(tmp_path: Path, bare: bool) -> None:
    events = [op(f"e{i}", n=i) for i in range(8)]
    text = json.dumps(events) if bare else wrapped(json.dumps(events)[1:-1])

    for length in range(text.index('{"ph"'), len(text), 7):
        reading = Reading(tmp_path, text[:length], chunk_bytes=200)
        complete = text[:length].count("}}")

        assert reading.names() == [f"e{i}" for i in range(min(complete, 8))], length


MANY = wrapped(",".join(json.dumps(op(f"e{i}", x=i * 0.37)) for i in range(20_000))).encode()


def test_a_cut_gzip_file_keeps_what_inflates(tmp_path: Path) -> None:
    packed = gzip.compress(MANY)

    reading = Reading(tmp_path, packed[: len(packed) // 2])

    kept = reading.names()
    assert 5_000 < len(kept) < 15_000
    assert kept == [f"e{i}" for i in range(len(kept))]
    assert any("gzip" in problem for _, problem, _ in reading.issues)


@pytest.mark.parametrize("chunk_bytes", [10_000, 1 << 23])
def test_gzip_that_is_damaged_in_its_middle_keeps_what_stands_before(tmp_path: Path, chunk_bytes: int) -> None:
    packed = bytearray(gzip.compress(MANY, mtime=0))
    middle = len(packed) // 2
    packed[middle : middle + 200] = b"\xff" * 200

    reading = Reading(tmp_path, packed, chunk_bytes=chunk_bytes)

    kept = reading.names()
    assert len(kept) > 8_000
    assert kept[:8_000] == [f"e{i}" for i in range(8_000)]
    damage = next(problem for severity, problem, _ in reading.issues if severity == "error")
    place = re.search(r"gzip data is damaged (?:at|before) byte (\d+)", damage)
    assert place is not None
    assert int(place[1]) >= middle


def test_gzip_with_a_wrong_checksum_keeps_all_and_is_doubted(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(json.dumps([op("a"), op("b")]).encode()))
    packed[-8:-4] = b"oops"

    reading = Reading(tmp_path, packed)

    assert reading.names() == ["a", "b"]
    assert "so values may be wrong" in reading.issues[0][1]


def test_gzip_that_is_damaged_at_its_start_is_not_called_empty(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(json.dumps([op("a")] * 50).encode()))
    packed[10:20] = b"\xff" * 10

    with pytest.raises(UnreadableInput, match="gzip data is damaged at byte 10"):
        Reading(tmp_path, packed)


def test_several_gzip_members_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf" + json.dumps([op("a"), op("b")]).encode()

    reading = Reading(tmp_path, gzip.compress(text[:20]) + gzip.compress(text[20:]) + b"\0" * 8)

    assert reading.names() == ["a", "b"]
    assert reading.issues == []


def test_workers_give_the_same_events_in_the_same_order(tmp_path: Path) -> None:
    events = [{**EVENTS[i % len(EVENTS)], "pid": i} for i in range(3000)]
    text = json.dumps({"traceEvents": events, "after": 1}).replace("5.25", "5.25\x00", 1)

    alone, shared = (Reading(tmp_path, text, chunk_bytes=20_000, workers=workers) for workers in (1, 2))

    assert {n: f.to_dicts() for n, f in alone.frames.items()} == {n: f.to_dicts() for n, f in shared.frames.items()}
    assert alone.issues == shared.issues
    assert shared.events.header == {"after": 1}


def test_a_time_that_is_no_text_costs_itself() -> None:
    assert times_ns([b'"1.5"', b'"\xff"', b"2"]).to_list() == [1500, None, 2000]
