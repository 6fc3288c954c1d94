"""Clean chunks of events -> columns, by the compiled decoder; `decode` does the same in Python."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import NamedTuple

import msgspec
import polars as pl

from stepscope.sources.native.columns import ColumnKind, FieldColumn, read_column, read_columns, read_places
from stepscope.sources.native.library import GivenText, Refused, int32s, loaded
from stepscope.sources.trace_events.base import Arg, EventClass, Layout, NewPlaces, Route
from stepscope.sources.trace_events.columns import arguments
from stepscope.tables.base import frame_of

_MOST_PAIRS = 512
_ABSENT, _NUMBER, _STRING, _ESCAPED = range(4)
_BASE = {"phase": 0, "name": 1, "category": 2, "process": 3, "thread": 4, "start_ns": 5, "duration_ns": 6, "id": 7}
_BASE_KINDS: dict[str, ColumnKind] = {"start_ns": "time", "duration_ns": "duration"}
_TIMES = ("start_ns", "duration_ns")


class Scanned(NamedTuple):
    """What a clean chunk contains."""

    frames: dict[str, pl.DataFrame]
    """By class; with `duration_us` in place of `duration_ns` where some times are not usable."""
    end: int
    """Where the text after the array begins; -1 unless this is the last chunk."""


class CompiledDecoder:
    """Decodes clean chunks of one layout; safe to use from several threads at once.

    Raises:
        Refused: On construction, if there is no compiled decoder.
    """

    def __init__(self, layout: Layout) -> None:
        self._library = loaded()
        self._layout = layout
        self._routes: dict[tuple[str, str | None], Route] = {}
        keys = list(dict.fromkeys(arg.key for cls in layout.classes for arg in cls.args))
        self.fields = {key: len(_BASE) + n for n, key in enumerate(keys)}
        """The field of each argument."""
        self._wants_places = any("place" in cls.base for cls in layout.classes)
        self._words, self._ends = _word_list(keys)

    def decode(self, text: bytes | memoryview, places: NewPlaces, *, last: bool) -> Scanned:
        """Decode a chunk; new ones of its places go to `places`.

        Raises:
            Refused: If anything in it is not clean JSON of the usual shape.
        """
        given = GivenText(text)
        at = given.pointer
        scan = self._library.ss_scan(at, len(text), self._words, self._ends, len(self.fields), last)
        if not scan:
            raise Refused
        try:
            counts = self._sort(scan, text, at)
            numbers = pl.Series("place", [], dtype=pl.Int32)
            if self._wants_places:
                labels = partial(self._text, scan, text)
                numbers = read_places(
                    scan,
                    at,
                    sum(counts),
                    lambda rows: [places.number((labels(row, 3), labels(row, 4))) for row in rows],
                )
            frames: dict[str, pl.DataFrame] = {}
            start = 0
            for cls, count in zip(self._layout.classes, counts, strict=True):
                if count:
                    frames[cls.name] = _Reader(self, scan, at, start, count).frame(cls, numbers)
                start += count
            return Scanned(frames, self._library.ss_end(scan))
        finally:
            self._library.ss_free(scan)

    def _sort(self, scan: int, text: bytes | memoryview, at: bytes | int) -> list[int]:
        """Sort the events into classes; returns the size of each class."""
        pairs = (ctypes.c_int32 * max(self._library.ss_count(scan), 1))()
        firsts = (ctypes.c_int32 * _MOST_PAIRS)()
        known = self._library.ss_pairs(scan, at, pairs, firsts, _MOST_PAIRS)
        if known < 0:
            raise Refused
        routes = [
            self._route(self._label(scan, text, first, 0) or "", self._label(scan, text, first, 2))
            for first in firsts[:known]
        ]
        defaults = [one.any_name for one in routes]
        rules = [(n, name, cls) for n, one in enumerate(routes) for name, cls in one.by_name.items()]
        words, ends = _word_list([name for _, name, _ in rules])
        classes = len(self._layout.classes)
        counts = (ctypes.c_int64 * classes)()
        by_name = (words, ends, int32s([n for n, _, _ in rules]), int32s([cls for _, _, cls in rules]), len(rules))
        if self._library.ss_sort(scan, at, pairs, int32s(defaults), classes, *by_name, counts) < 0:
            raise Refused
        return list(counts)

    def _route(self, phase: str, category: str | None) -> Route:
        """As of the layout, which takes a while; all but a few chunks have the pairs of the first ones."""
        route = self._routes.get((phase, category))
        if route is None:
            route = self._layout.route(phase, category)
            if len(self._routes) < _MOST_PAIRS:
                self._routes[phase, category] = route
        return route

    def _label(self, scan: int, text: bytes | memoryview, event: int, field: int) -> str | None:
        """A phase or category."""
        start, length, kind = self._where(scan, event, field)
        if kind not in (_ABSENT, _STRING):
            raise Refused
        return bytes(text[start : start + length]).decode() if kind == _STRING else None

    def _text(self, scan: int, text: bytes | memoryview, event: int, field: int) -> str | None:
        """A process or thread: plain numbers and texts."""
        start, length, kind = self._where(scan, event, field)
        if kind == _ESCAPED:
            return str(msgspec.json.decode(text[start - 1 : start + length + 1]))
        return bytes(text[start : start + length]).decode() if kind in (_NUMBER, _STRING) else None

    def _where(self, scan: int, event: int, field: int) -> Sequence[int]:
        where = (ctypes.c_int64 * 3)()
        self._library.ss_where(scan, event, field, where)
        return list(where)


class _Reader:
    """Reads columns of the events of one class: `count` ones from `start` on."""

    def __init__(self, decoder: CompiledDecoder, scan: int, text: bytes | int, start: int, count: int) -> None:
        self._fields = decoder.fields
        self._scan, self._text, self._start, self._count = scan, text, start, count

    def frame(self, cls: EventClass, places: pl.Series) -> pl.DataFrame:
        """All columns; with `duration_us` in place of `duration_ns` if some times are not usable."""
        first, others = self._spellings(cls)
        try:
            made = self._columns(cls, first, _BASE_KINDS)
            is_usable = cls.phases != {"X"} or not any(name in made and made[name].null_count() for name in _TIMES)
        except Refused:
            is_usable = False
        if not is_usable:
            made = self._columns(cls, first, {**_BASE_KINDS, "duration_ns": "float"})
            made["duration_ns"] = made["duration_ns"].alias("duration_us")
        base = [places.slice(self._start, self._count) if name == "place" else made.pop(name) for name in cls.base]
        for arg in others:
            if made[arg.column].null_count():
                made[arg.column] = made[arg.column].fill_null(self._column(arg))
        return frame_of([*base, *arguments(made, cls.args)])

    def _spellings(self, cls: EventClass) -> tuple[list[Arg], list[Arg]]:
        """The arguments that become columns, one for each, and further spellings of them that occur."""
        first: dict[str, Arg] = {}
        others = []
        for arg in cls.args:
            is_met = loaded().ss_met(self._scan, self._fields[arg.key])
            known = first.get(arg.column)
            if known is None and (is_met or not arg.rare):
                first[arg.column] = arg
            elif known is not None and is_met and loaded().ss_met(self._scan, self._fields[known.key]):
                others.append(arg)
            elif known is not None and is_met:
                first[arg.column] = arg
        return list(first.values()), others

    def _columns(self, cls: EventClass, args: list[Arg], kinds: Mapping[str, ColumnKind]) -> dict[str, pl.Series]:
        """The columns of a class from the events' own fields, but for places, and those of arguments."""
        known = {"phase": "X", "id": None} if cls.phases == {"X"} else {}  # without looking
        own = [name for name in cls.base if name not in known and name != "place"]
        wanted = [FieldColumn(name, _BASE[name], kinds.get(name, "text")) for name in own]
        wanted += [FieldColumn(arg.column, self._fields[arg.key], arg.kind) for arg in args]
        columns = read_columns(self._scan, self._text, wanted, self._start, self._count)
        made = {column.name: column for column in columns}
        if "name" in made and made["name"].null_count():
            made["name"] = made["name"].fill_null("")
        one = {name: pl.Series(name, [value], dtype=pl.String) for name, value in known.items() if name in cls.base}
        return made | {name: column.new_from_index(0, self._count) for name, column in one.items()}

    def _column(self, arg: Arg) -> pl.Series:
        field = self._fields[arg.key]
        return read_column(self._scan, self._text, field, arg.kind, self._start, self._count, arg.column)


def _word_list(words: list[str]) -> tuple[bytes, ctypes.Array[ctypes.c_int32]]:
    """Words one after the other, and where each ends."""
    encoded = [word.encode() for word in words]
    return b"".join(encoded), int32s(list(accumulate(map(len, encoded))))
