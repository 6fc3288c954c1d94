"""Text of some events -> a batch of columns, by a decoder made for the layout."""

from __future__ import annotations

import gc
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any

import msgspec
import polars as pl

from stepscope.sources.native.library import Refused
from stepscope.sources.trace_events import columns
from stepscope.sources.trace_events.base import Arg, EventClass, Layout, NewPlaces, Place, Problem
from stepscope.sources.trace_events.compiled import CompiledDecoder
from stepscope.sources.trace_events.salvage import DECODE_ERRORS, Salvaged, salvage

_NO_RAW = msgspec.Raw(b"")
_ARRAY_END = re.compile(rb"\}\s*(\])\s*(?:,\s*\"|\}|\Z)")
_END_GUESSES = 16
_KEYS = {"phase": "ph", "name": "name", "category": "cat", "process": "pid", "thread": "tid", "id": "id"}
_COLUMNS = {
    "int": columns.integers,
    "small": columns.small_integers,
    "float": columns.floats,
    "text": columns.texts,
    "json": columns.json_texts,
}


@dataclass
class Decoded:
    """What one chunk contains."""

    frames: dict[str, pl.DataFrame]
    """The events by class."""
    places: Collection[Place]
    """What -1, -2 and so on mean in `place` of these frames."""
    problems: dict[str, Problem]
    """Damaged events by what is wrong with them."""
    ended: bool = False
    """True if the array of events ends in this chunk."""
    rest: bytes = b""
    """The text after the array if it ends in this chunk, or else an event that goes on in the next chunk."""

    def __post_init__(self) -> None:
        self.frames = {name: frame for name, frame in self.frames.items() if frame.height}
        if not self.rest.strip():
            self.rest = b""


class EventDecoder:
    """Decodes chunks of events into the frames of a layout; safe to use from several threads at once.

    Args:
        layout: Which events are wanted.
        places: The places that are known, to which another thread may add.
    """

    def __init__(self, layout: Layout, places: Mapping[Place, int] | None = None) -> None:
        self._layout = layout
        self._places = {} if places is None else places
        try:
            self._compiled: CompiledDecoder | None = CompiledDecoder(layout)
        except Refused:
            self._compiled = None

    def decode(self, text: bytes | memoryview, *, last: bool = False, offset: int = 0) -> Decoded:
        """Decode a chunk: events separated by commas, without the brackets of the array.

        A chunk that is not clean JSON is decoded event by event, and only broken events are lost.

        Args:
            text: The chunk, cut between two events as far as the chunker could tell.
            last: True if the file ends with this chunk; it then holds the end of the array as well.
            offset: Where the chunk begins in the (inflated) file, to report the place of damage.
        """
        decoded = self._decode_clean(text, last=last)
        if decoded is not None:
            return decoded
        was_enabled = gc.isenabled()
        gc.disable()  # thousands of small objects and no cycles: collections only cost time
        try:
            return self._decode(bytes(text), last=last, offset=offset)
        finally:
            if was_enabled:
                gc.enable()

    def _decode_clean(self, text: bytes | memoryview, *, last: bool) -> Decoded | None:
        """Decode with the compiled decoder; None if there is none or the text is not plain enough for it."""
        if self._compiled is None:
            return None
        places = NewPlaces(self._places)
        try:
            raw, end = self._compiled.decode(text, places, last=last)
        except Refused:
            return None
        rest = bytes(text[end:]) if last else b""
        if last and not _completes(rest):
            return None
        problems: dict[str, Problem] = {}
        phases = {cls.name: cls.phases for cls in self._layout.classes}
        frames = {name: columns.usable(frame, phases[name], problems) for name, frame in raw.items()}
        return Decoded(frames, places, problems, ended=last, rest=rest)

    def _decode(self, text: bytes, *, last: bool, offset: int) -> Decoded:
        end, rest = _array_end(text) if last else (len(text), b"")
        if end is not None:
            with suppress(*DECODE_ERRORS):
                events = self._types.events.decode(b"[" + text[:end] + b"]")
                return self._sorted(Salvaged(events, ended=last, rest=rest))
        return self._sorted(salvage(text, self._types.event.decode, last=last, offset=offset))

    @cached_property
    def _types(self) -> _EventTypes:
        """Made when a chunk is not clean: to make types takes longer than to read a small trace without them."""
        return _EventTypes(self._layout)

    def _sorted(self, found: Salvaged) -> Decoded:
        buckets: list[list[Any]] = [[] for _ in (*self._layout.classes, None)]  # the last one is for events of no class
        targets: dict[tuple[str, str | None], tuple[dict[Any, Any], Any]] = {}
        for event in found.events:
            key = (event.ph, event.cat)
            target = targets.get(key)
            if target is None:
                by_name, any_name = self._layout.route(*key)
                named = {name: buckets[index].append for name, index in by_name.items()}
                target = targets[key] = (named, buckets[any_name].append)
            named, append = target
            if named:
                append = named.get(event.name, append)
            append(event)
        places = NewPlaces(self._places)
        frames = {
            cls.name: self._frame(cls, bucket, places, found.problems)
            for cls, bucket in zip(self._layout.classes, buckets, strict=False)
            if bucket
        }
        return Decoded(frames, places, found.problems, found.ended, found.rest)

    def _frame(
        self, cls: EventClass, events: list[Any], places: NewPlaces, problems: dict[str, Problem]
    ) -> pl.DataFrame:
        made = [self._base(name, cls, events, places) for name in cls.base]
        if cls.args:
            none = self._types.no_args
            made += self._arguments(cls.args, [none if a is None else a for a in _each("args", events)])
        return columns.usable(pl.DataFrame(made), cls.phases, problems)

    def _base(self, name: str, cls: EventClass, events: list[Any], places: NewPlaces) -> pl.Series:
        if name == "place":
            found = zip(*(columns.texts("", _each(key, events)).to_list() for key in ("pid", "tid")), strict=True)
            return pl.Series(name, [places.number(one) for one in found], dtype=pl.Int32)
        if name == "start_ns":
            return columns.times_ns(list(map(bytes, _each("ts", events))))
        if name == "duration_ns":
            return columns.floats("duration_us", _each("dur", events))
        if name == "id" and cls.phases == {"X"}:  # the format gives complete events no id
            return columns.texts(name, [None] * len(events))
        column = columns.texts(name, _each(_KEYS[name], events))
        return column.fill_null("") if name == "name" else column

    def _arguments(self, wanted: tuple[Arg, ...], args: list[Any]) -> Iterable[pl.Series]:
        made: dict[str, pl.Series] = {}
        for arg in wanted:
            one = _COLUMNS[arg.kind](arg.column, _each(self._types.fields[arg.key], args))
            made[arg.column] = made[arg.column].fill_null(one) if arg.column in made else one
        return columns.arguments(made, wanted)


def _each(field: str, objects: list[Any]) -> list[Any]:
    """One field of many objects, without calling a Python function for each."""
    return list(map(attrgetter(field), objects))


class _EventTypes:
    """What decodes events of a layout in Python: one or a list of them."""

    def __init__(self, layout: Layout) -> None:
        one, self.fields = _event_type(layout)
        """The name of the field in `args` for each key."""
        self.event: msgspec.json.Decoder[Any] = msgspec.json.Decoder(one)
        self.events = msgspec.json.Decoder(list[one])  # type: ignore[valid-type]
        self.no_args = self.event.decode(b'{"args":{}}').args


def _event_type(layout: Layout) -> tuple[type[msgspec.Struct], dict[str, str]]:
    """The type of events, with a field in `args` for each key that the layout uses, and key to name of that field."""
    kinds = {arg.key: arg.kind for cls in layout.classes for arg in cls.args}
    fields = {key: f"a{number}" for number, key in enumerate(kinds)}
    # `Any` takes every value, so that an argument of an unusual kind does not break a whole chunk
    types: list[tuple[str, Any, Any]] = [
        (fields[key], msgspec.Raw, _NO_RAW) if kind == "json" else (fields[key], Any, None)
        for key, kind in kinds.items()
    ]
    names = {field: key for key, field in fields.items()}
    args = msgspec.defstruct("Args", types, gc=False, rename=names)
    label = int | float | str | None
    event = msgspec.defstruct(
        "Event",
        [
            ("ph", str, ""),
            ("name", label, None),
            ("cat", str | None, None),
            ("pid", label, None),
            ("tid", label, None),
            ("ts", msgspec.Raw, _NO_RAW),  # exact text: see `columns.times_ns`
            ("dur", float | str | None, None),
            ("id", label, None),
            ("args", args | None, None),
        ],
        gc=False,
    )
    return event, fields


def _array_end(text: bytes) -> tuple[int | None, bytes]:
    """Where the array of events ends in the file's last chunk, and the text after its bracket.

    A guess is right if the text after it completes the outer object or is empty.
    """
    guesses = [match.start(1) for match in _ARRAY_END.finditer(text)]
    for end in reversed(guesses[-_END_GUESSES:]):
        rest = text[end + 1 :]
        if _completes(rest):
            return end, rest
    return None, b""


def _completes(rest: bytes) -> bool:
    """Whether the text after the array completes the outer object or is empty."""
    if not rest.strip():
        return True
    try:
        msgspec.json.decode(b'{"":[]' + rest)
    except DECODE_ERRORS:
        return False
    return True
