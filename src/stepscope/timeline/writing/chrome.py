"""Timelines as Chrome's trace events, JSON: for chrome://tracing and all that reads this format.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, BinaryIO

import polars as pl

from stepscope.timeline.tracks.base import FLOW_IN, FLOW_OUT
from stepscope.timeline.writing.base import Process, Track, argument_columns, flow_columns, readable
from stepscope.timeline.writing.events import (
    MOST_KEPT,
    SEPARATOR,
    arguments,
    arrow_end,
    complete,
    json_text,
    names,
    sample,
)

BUFFER_BYTES = 1 << 20
_EXACT = 1 << 53
"""From here on, viewers would round whole numbers."""

_readable = lru_cache(MOST_KEPT)(readable)


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
        self._threads: list[Track] = []
        self._of_job: set[int] = set()
        """Processes that are about the whole job."""
        self._write(f'{{"displayTimeUnit":"ms","baseTimeNanoseconds":{base_ns},"traceEvents":[\n')
        self._write('{"ph":"M","name":"trace","pid":0,"tid":0,"args":{"made_by":"stepscope timeline"}}')

    @property
    def size_bytes(self) -> int:
        """How large the file has become, before it is compressed."""
        return self._written + self._held

    def process(self, process: Process) -> None:
        """A new process."""
        if not process.is_rank:
            self._of_job.add(process.number)
        labels = {"labels": readable(", ".join(process.labels))} if process.labels else {}
        self._events(
            names("process", (process.number, 0), name=readable(process.name), sort_index=process.order, **labels)
        )

    def track(self, track: Track) -> None:
        """A new track, as a thread: the format knows no groups, so they are in its name."""
        title = readable(f"{track.group}: {track.title}" if track.group else track.title)
        self._places[track.number] = (track.process, title)
        if track.is_counter:
            return
        self._threads.append(track)
        self._events(names("thread", (track.process, track.number), name=title))

    def ranges(self, rows: pl.DataFrame, until_ns: int | None) -> None:  # noqa: ARG002 - ranges have their ends
        """Ranges, each an event with a length, or an instant."""
        base, told = self._base, argument_columns(rows)
        columns = [rows[name].to_list() for name in ("number", "start_ns", "end_ns", "name", "category")]
        values = [rows[name].to_list() for name in told]
        for row, (number, start, end, name, category) in enumerate(zip(*columns, strict=True)):
            process, _ = self._places[number]
            known = ((title, _shown(column[row])) for title, column in zip(told, values, strict=True))
            event = complete(
                _readable(name),
                (process, number),
                start - base,
                None if end is None else end - start,
                category=_readable(category),
                args=arguments(known),
                scope="g" if process in self._of_job else "t",
            )
            self._write(SEPARATOR + event)
        self._arrows(rows, flow_columns(rows))

    def samples(self, rows: pl.DataFrame) -> None:
        """Samples of counters, which the format tells apart by process and name alone."""
        for number, at, value in rows.select("number", "start_ns", "value").iter_rows():
            process, title = self._places[number]
            self._write(SEPARATOR + sample(title, (process, 0), at - self._base, value))

    def close(self) -> None:
        """The end of the file, with the places of threads: now all are known."""
        for place, track in enumerate(sorted(self._threads, key=lambda each: (each.process, each.order))):
            self._events(names("thread", (track.process, track.number), sort_index=place))
        self._write("\n]}\n")
        self._flush()

    def _arrows(self, rows: pl.DataFrame, flows: Iterable[str]) -> None:
        for column in flows:
            meaning = column.removeprefix(FLOW_OUT).removeprefix(FLOW_IN)
            ends = rows.filter(pl.col(column).is_not_null()).select("number", "start_ns", column)
            for number, at, flow in ends.iter_rows():
                place, is_tail = (self._places[number][0], number), column.startswith(FLOW_OUT)
                arrow = json_text(f"0x{flow:x}")
                end = arrow_end(meaning, place, at - self._base, arrow, is_tail=is_tail, category=meaning)
                self._write(SEPARATOR + end)

    def _events(self, events: Iterable[str]) -> None:
        for event in events:
            self._write(SEPARATOR + event)

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


def _shown(value: Any) -> Any:
    """An argument as viewers can take it."""
    if isinstance(value, int) and abs(value) >= _EXACT:
        return str(value)
    return _readable(value) if isinstance(value, str) else value
