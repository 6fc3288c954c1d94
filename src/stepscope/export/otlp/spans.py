"""Ranges as spans: a trace for each step of a rank, with a span around all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec
import polars as pl

from stepscope.export.otlp.ids import Ids
from stepscope.export.otlp.messages import INTERNAL, LONGEST_TEXT, Link, Span, Value, attribute, attributes
from stepscope.export.otlp.ranges import SLICE
from stepscope.tables.steps import WHOLE_RECORDING

PREFIX = "stepscope."
STEP_CATEGORY = "step"
"""`stepscope.category` of the span around a trace, which no range has."""

_LATEST = (1 << 64) - 1
_HEAD = ("category", "step", "process", "thread", "device", "stream")
_FACTS = ("type", "core", "grid", "block", "direction", "input_shapes", "input_types", "output_shapes")
_CALL = ("group", "sequence", "operation", "element_type", "peer", "arrival", "wait_ns", "members")
_COLUMNS = (
    *("kind", "number", "start_ns", "duration_ns", "name", "characters", "parent", "parent_step", "by_launch"),
    *("collective", "size_bytes", "others", "others_lost"),
)


Root = tuple[int | None, int, int, str | None, int | None]
"""A step (null for what is outside all), its start and end, its window and graph (see the table `steps`)."""


class Spans:
    """The spans of one rank, encoded.

    Args:
        rank: Its number.
        ids: Ids of the run.
        shifts_ns: Added to the times of ranges, by kind.
        threads: Names of its threads by process and thread.
    """

    def __init__(
        self,
        rank: int,
        ids: Ids,
        shifts_ns: Mapping[int, int],
        threads: Mapping[tuple[str | None, str | None], str],
    ) -> None:
        self.rank = rank
        self._ids = ids
        self._shifts_ns = shifts_ns
        self._threads = threads
        self.written: Counter[str] = Counter()
        """Number of spans by category."""
        self.faults: Counter[str] = Counter()
        """How often something could not be said as it was recorded."""
        self._head = lru_cache(maxsize=16384)(self._placed)

    def roots(self, steps: Iterable[Root]) -> Iterator[bytes]:
        """The span around each step."""
        for step, start, end, window, graph in steps:
            name = "outside steps" if step is None else "recording" if window == WHOLE_RECORDING else f"step {step}"
            told = {"category": STEP_CATEGORY, "step": step, "window": window, "graph": graph}
            self.written[STEP_CATEGORY] += 1
            yield msgspec.json.encode(
                Span(
                    self._ids.trace(self.rank, step),
                    self._ids.root(self.rank, step),
                    name,
                    INTERNAL,
                    _time(start),
                    _time(max(start, end)),
                    msgspec.Raw(attributes({PREFIX + key: value for key, value in told.items()})),
                )
            )

    def of(self, part: pl.DataFrame) -> Iterator[bytes]:
        """Ranges as spans, each below its parent if that is in the same step, else below the span of its own step.

        Args:
            part: Ranges with all that is known of them, and their parents.
        """
        part = self._shortened(part)
        head, facts, call = (part.select(names).iter_rows() for names in (_HEAD, _FACTS, _CALL))
        own = part.select(_COLUMNS).iter_rows()
        for row, of_place, of_work, of_call in zip(own, head, facts, call, strict=True):
            kind, number, start, duration, name, characters, parent, parent_step, by_launch, *rest = row
            collective, size_bytes, others, others_lost = rest
            category, step = of_place[0], of_place[1]
            start += self._shifts_ns[kind]
            told = [self._head(*of_place), _facts(*of_work)]
            if size_bytes is not None:
                told.append(b"," + attribute(PREFIX + "size_bytes", size_bytes))
            if collective is not None:
                told.append(_fields(_CALL, of_call))
            if characters is not None:
                told.append(b"," + attribute(PREFIX + "name_characters", characters))
            if duration < 0:
                self.faults["negative durations"] += 1
                told.append(b"," + attribute(PREFIX + "duration_ns", duration))
            links = [] if others is None else [self._member(other) for other in others]
            above = self._ids.root(self.rank, step)
            if parent is not None:
                span = self._ids.span(self.rank, SLICE, parent)
                if parent_step == step:
                    above = span
                else:
                    reason = "launch" if by_launch else "enclosing"
                    links.append(Link(self._ids.trace(self.rank, parent_step), span, _link(reason)))
            self.written[category] += 1
            yield msgspec.json.encode(
                Span(
                    self._ids.trace(self.rank, step),
                    self._ids.span(self.rank, kind, number),
                    name,
                    INTERNAL,
                    _time(start),
                    _time(start + max(duration, 0)),
                    msgspec.Raw(b"[" + b"".join(told) + b"]"),
                    parent_span_id=above,
                    links=links,
                    dropped_links_count=others_lost or 0,
                )
            )

    def _member(self, other: Mapping[str, Any]) -> Link:
        rank = other["rank"]
        span = self._ids.span(rank, other["kind"], other["number"])
        return Link(self._ids.trace(rank, other["span_step"]), span, _link("collective", rank))

    def _placed(
        self,
        category: str,
        step: int | None,
        process: str | None,
        thread: str | None,
        device: int | None,
        stream: int | None,
    ) -> bytes:
        """What is told of the place of a range; `thread.id` and `thread.name` are OpenTelemetry's own."""
        told: dict[str, Value | None] = {PREFIX + "category": category, PREFIX + "step": step}
        told |= {PREFIX + "process": process, PREFIX + "device": device, PREFIX + "stream": stream}
        name = self._threads.get((process, thread), thread)
        if device is None and stream is None:
            is_number = thread is not None and thread.isascii() and thread.isdecimal() and int(thread) < 1 << 63
            told |= {"thread.id": int(thread) if thread is not None and is_number else None, "thread.name": name}
        else:
            told[PREFIX + "track"] = name
        return attributes(told)[1:-1]

    def _shortened(self, part: pl.DataFrame) -> pl.DataFrame:
        """Ranges with texts that lines can hold; `characters` is the length of names that are cut."""
        part = part.with_columns(characters=pl.lit(None, pl.UInt32))
        for column in part.get_columns():
            if column.dtype != pl.String or not (column.str.len_bytes() > LONGEST_TEXT).any():
                continue
            length = pl.col(column.name).str.len_chars()
            too_long = length > LONGEST_TEXT
            part = part.with_columns(cut=too_long, length=length)
            self.faults["cut texts"] += int(part["cut"].sum())
            if column.name == "name":
                part = part.with_columns(characters=pl.when("cut").then("length"))
            part = part.with_columns(pl.col(column.name).str.slice(0, LONGEST_TEXT)).drop("cut", "length")
        return part


def _time(time_ns: int) -> str:
    return str(min(time_ns, _LATEST))


@lru_cache(maxsize=16384)
def _facts(*values: Value | None) -> bytes:
    """What is known of an operator or a piece of device work, behind other attributes."""
    return _fields(_FACTS, values)


def _fields(names: tuple[str, ...], values: tuple[Value | None, ...]) -> bytes:
    pairs = zip(names, values, strict=True)
    return b"".join(b"," + attribute(PREFIX + name, value) for name, value in pairs if value is not None)


@lru_cache(maxsize=4096)
def _link(reason: str, rank: int | None = None) -> msgspec.Raw:
    return msgspec.Raw(attributes({PREFIX + "link": reason, PREFIX + "rank": rank}))
