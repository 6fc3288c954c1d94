"""Timelines as Chrome's trace events, JSON: for chrome://tracing and all that reads this format.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, BinaryIO

import polars as pl

from stepscope.text_columns import filled_in
from stepscope.timeline.tracks.base import FLOW_IN, FLOW_OUT
from stepscope.timeline.writing.base import Process, Track, argument_columns, flow_columns, readable
from stepscope.timeline.writing.events import (
    LONGEST_KEPT,
    MOST_KEPT,
    SEPARATOR,
    arguments,
    arrow_end,
    beginning,
    json_text,
    names,
    sample,
)

BUFFER_BYTES = 1 << 20
_EXACT = 1 << 53
"""From here on, viewers would round whole numbers."""

_kept_readable = lru_cache(MOST_KEPT)(readable)


def _readable(text: str) -> str:
    return _kept_readable(text) if len(text) <= LONGEST_KEPT else readable(text)


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
        if rows.is_empty():
            return
        told = argument_columns(rows)
        numbers = [name for name in told if rows.schema[name].is_integer()]
        texts = [name for name in told if name not in numbers]
        known = pl.concat_str("told", *map(_number, numbers), separator=",", ignore_nulls=True)
        events = rows.with_columns(self._common(rows, texts)).with_columns(known=known)
        length = pl.concat_str(pl.lit(',"dur":'), _us(pl.col("end_ns") - pl.col("start_ns")))
        args = pl.when(pl.col("known") != "").then(pl.concat_str(pl.lit(',"args":{'), "known", pl.lit("}")))
        event = pl.concat_str(
            pl.lit(SEPARATOR), "opening", pl.lit(',"ts":'), _us(pl.col("start_ns") - self._base), length, args,
            pl.lit("}"), ignore_nulls=True,
        )  # fmt: skip
        self._write(events.select(event.str.join()).item())
        self._arrows(rows, flow_columns(rows))

    def _common(self, rows: pl.DataFrame, texts: list[str]) -> pl.DataFrame:
        """What ranges of a track, name and texts have in common, as JSON that is made once: `opening` and `told`."""
        key = ["number", "name", "category", *texts]
        wanted = rows.select(*key, is_point=pl.col("end_ns").is_null())
        distinct = wanted.unique(maintain_order=True)
        made = []
        for number, name, category, *values, is_point in distinct.iter_rows():
            process, _ = self._places[number]
            scope = "g" if process in self._of_job else "t"
            kind = _readable(category)
            opening = beginning(_readable(name), (process, number), category=kind, is_point=is_point, scope=scope)
            known = zip(texts, map(_shown, values), strict=True)
            made.append((opening, arguments(known)[1:-1] or None))
        common = pl.DataFrame(made, {"opening": pl.String, "told": pl.String}, orient="row")
        found = wanted.join(
            pl.concat([distinct, common], how="horizontal"),
            on=[*key, "is_point"],
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
        return found.select("opening", "told")

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
    return _readable(value) if isinstance(value, str) else value


def _us(ns: pl.Expr) -> pl.Expr:
    """Microseconds as `us_text` writes them; null stays null."""
    size = ns.abs()
    sign = pl.when(ns < 0).then(pl.lit("-")).otherwise(pl.lit(""))
    return filled_in("{}{}.{}", sign, size // 1000, (size % 1000).cast(pl.String).str.zfill(3))


def _number(column: str) -> pl.Expr:
    """An argument that is a whole number as JSON; those that viewers would round are texts."""
    value = pl.col(column)
    quote = pl.when((value >= _EXACT) | (value <= -_EXACT)).then(pl.lit('"')).otherwise(pl.lit(""))
    return pl.when(value.is_not_null()).then(pl.concat_str(pl.lit(f"{json_text(column)}:"), quote, value, quote))
