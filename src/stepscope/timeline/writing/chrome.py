"""Timelines as Chrome's trace events, JSON: for chrome://tracing and all that reads this format.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from math import isfinite
from typing import Any, BinaryIO

import polars as pl

from stepscope.timeline.tracks.base import FLOW_OUT
from stepscope.timeline.writing.base import Process, Track, argument_columns, flow_columns, readable

BUFFER_BYTES = 1 << 20
MOST_KEPT = 200_000
"""Texts whose JSON is remembered."""


def us_text(ns: int) -> str:
    """Microseconds as decimal text, exact to the nanosecond.

    Examples:
        >>> us_text(1234567), us_text(-5)
        ('1234.567', '-0.005')
    """
    return f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"


@lru_cache(MOST_KEPT)
def json_text(text: str) -> str:
    """A text as JSON, as viewers can take it."""
    return json.dumps(readable(text), ensure_ascii=False)


class ChromeWriter:
    """Writes a timeline as Chrome's trace events.

    Args:
        file: Where to write.
        base_ns: What all times are counted from.
    """

    def __init__(self, file: BinaryIO, base_ns: int) -> None:
        self._file, self._base = file, base_ns
        self._parts: list[str] = []
        self._held = self._written = 0
        self._places: dict[int, tuple[int, str]] = {}
        self._groups: dict[tuple[int, str], None] = {}
        self._write(f'{{"displayTimeUnit":"ms","baseTimeNanoseconds":{base_ns},"traceEvents":[\n')
        self._write('{"ph":"M","name":"trace","pid":0,"tid":0,"args":{"made_by":"stepscope timeline"}}')

    @property
    def size_bytes(self) -> int:
        """How large the file has become, before it is compressed."""
        return self._written + self._held

    def process(self, process: Process) -> None:
        """A new process."""
        self._meta("process_name", process.number, 0, {"name": readable(process.name)})
        self._meta("process_sort_index", process.number, 0, {"sort_index": process.order})
        if process.labels:
            self._meta("process_labels", process.number, 0, {"labels": readable(", ".join(process.labels))})

    def track(self, track: Track) -> None:
        """A new track, as a thread: the format knows no groups, so they are in its name."""
        title = readable(f"{track.group}: {track.title}" if track.group else track.title)
        self._places[track.number] = (track.process, title)
        if track.is_counter:
            return
        group, place, lane = track.order
        self._meta("thread_name", track.process, track.number, {"name": title})
        order = min(group * 10_000_000 + place * 1000 + lane, 2**31 - 1)
        self._meta("thread_sort_index", track.process, track.number, {"sort_index": order})

    def ranges(self, rows: pl.DataFrame, until_ns: int | None) -> None:  # noqa: ARG002 - ranges have their ends
        """Ranges, each an event with a length, or an instant."""
        arguments, flows = argument_columns(rows), flow_columns(rows)
        ends, base = rows["end_ns"].to_list(), self._base
        columns = [rows[name].to_list() for name in ("number", "start_ns", "name", "category")]
        values = [(json.dumps(name), rows[name].to_list()) for name in arguments]
        for row, (number, start, name, category) in enumerate(zip(*columns, strict=True)):
            process, _ = self._places[number]
            end = ends[row]
            head = "X" if end is not None else "i"
            tail = f',"dur":{us_text(end - start)}' if end is not None else ',"s":"t"'
            known = ",".join(f"{key}:{_value(column[row])}" for key, column in values if column[row] is not None)
            place = f'"pid":{process},"tid":{number},"ts":{us_text(start - base)}'
            text = f'{{"ph":"{head}","name":{json_text(name)},"cat":{json_text(category)},{place}{tail}'
            self._event(f'{text},"args":{{{known}}}}}' if known else f"{text}}}")
        self._arrows(rows, flows)

    def samples(self, rows: pl.DataFrame) -> None:
        """Samples of counters."""
        for number, at, value in rows.select("number", "start_ns", "value").iter_rows():
            process, title = self._places[number]
            place = f'"pid":{process},"ts":{us_text(at - self._base)}'
            self._event(f'{{"ph":"C","name":{json_text(title)},{place},"args":{{"value":{json.dumps(value)}}}}}')

    def close(self) -> None:
        """The end of the file."""
        self._write("\n]}\n")
        self._flush()

    def _arrows(self, rows: pl.DataFrame, flows: Iterable[str]) -> None:
        for column in flows:
            meaning = json.dumps(column.removeprefix("flow_out_").removeprefix("flow_in_"))
            head = f'{{"ph":"s","name":{meaning},"cat":{meaning}'
            if not column.startswith(FLOW_OUT):
                head = f'{{"ph":"f","bp":"e","name":{meaning},"cat":{meaning}'
            ends = rows.filter(pl.col(column).is_not_null()).select("number", "start_ns", column)
            for number, at, flow in ends.iter_rows():
                place = f'"pid":{self._places[number][0]},"tid":{number},"ts":{us_text(at - self._base)}'
                self._event(f'{head},"id":"0x{flow:x}",{place}}}')

    def _meta(self, name: str, process: int, thread: int, args: dict[str, Any]) -> None:
        event = {"ph": "M", "name": name, "pid": process, "tid": thread, "args": args}
        self._event(json.dumps(event, separators=(",", ":"), ensure_ascii=False))

    def _event(self, text: str) -> None:
        self._write(",\n" + text)

    def _write(self, text: str) -> None:
        self._parts.append(text)
        self._held += len(text)
        if self._held >= BUFFER_BYTES:
            self._flush()

    def _flush(self) -> None:
        data = "".join(self._parts).encode("utf-8", "backslashreplace")
        self._file.write(data)
        self._written += len(data)
        self._parts, self._held = [], 0


def _value(value: Any) -> str:
    """An argument as JSON."""
    if isinstance(value, str):
        return json_text(value)
    if isinstance(value, int) and abs(value) >= 1 << 53 and not isinstance(value, bool):
        return f'"{value}"'  # JavaScript would round it
    if isinstance(value, float) and not isfinite(value):
        return f'"{value}"'  # JSON has no such number
    return json.dumps(value)
