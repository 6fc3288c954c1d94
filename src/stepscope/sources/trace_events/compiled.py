"""Clean chunks of events -> columns, by the compiled decoder; `decode` does the same in Python."""

from __future__ import annotations

import ctypes
from itertools import accumulate

import polars as pl

from stepscope.sources.native.columns import ColumnKind, read_column
from stepscope.sources.native.library import Refused, int32s, loaded
from stepscope.sources.trace_events.base import EventClass, Layout

_MOST_PAIRS = 512
_ABSENT, _STRING = 0, 2
_BASE = {"phase": 0, "name": 1, "category": 2, "process": 3, "thread": 4, "start_ns": 5, "duration_us": 6, "id": 7}
_BASE_KINDS: dict[str, ColumnKind] = {"start_ns": "time", "duration_us": "float"}


class CompiledDecoder:
    """Decodes clean chunks of one layout; safe to use from several threads at once.

    Raises:
        Refused: On construction, if there is no compiled decoder.
    """

    def __init__(self, layout: Layout) -> None:
        self._library = loaded()
        self._layout = layout
        keys = list(dict.fromkeys(arg.key for cls in layout.classes for arg in cls.args))
        self._field = {key: len(_BASE) + n for n, key in enumerate(keys)}
        self._words, self._ends = _word_list(keys)

    def decode(self, text: bytes, *, last: bool) -> tuple[dict[str, pl.DataFrame], int]:
        """Decode a chunk.

        Returns:
            Raw frames by class (`phase`, the base columns with `duration_us`, the arguments), and where the text after
            the array begins (-1 unless `last`).

        Raises:
            Refused: If anything in it is not clean JSON of the usual shape.
        """
        scan = self._library.ss_scan(text, len(text), self._words, self._ends, len(self._field), last)
        if not scan:
            raise Refused
        try:
            frames: dict[str, pl.DataFrame] = {}
            start = 0
            for cls, count in zip(self._layout.classes, self._sort(scan, text), strict=True):
                if count:
                    frames[cls.name] = self._frame(scan, text, cls, start, count)
                start += count
            return frames, self._library.ss_end(scan)
        finally:
            self._library.ss_free(scan)

    def _sort(self, scan: int, text: bytes) -> list[int]:
        """Sort the events into classes; returns the size of each class."""
        pairs = (ctypes.c_int32 * max(self._library.ss_count(scan), 1))()
        firsts = (ctypes.c_int32 * _MOST_PAIRS)()
        known = self._library.ss_pairs(scan, text, pairs, firsts, _MOST_PAIRS)
        if known < 0:
            raise Refused
        routes = [
            self._layout.route(self._label(scan, text, first, 0) or "", self._label(scan, text, first, 2))
            for first in firsts[:known]
        ]
        defaults = [one.any_name for one in routes]
        rules = [(n, name, cls) for n, one in enumerate(routes) for name, cls in one.by_name.items()]
        words, ends = _word_list([name for _, name, _ in rules])
        classes = len(self._layout.classes)
        counts = (ctypes.c_int64 * classes)()
        by_name = (words, ends, int32s([n for n, _, _ in rules]), int32s([cls for _, _, cls in rules]), len(rules))
        if self._library.ss_sort(scan, text, pairs, int32s(defaults), classes, *by_name, counts) < 0:
            raise Refused
        return list(counts)

    def _label(self, scan: int, text: bytes, event: int, field: int) -> str | None:
        where = (ctypes.c_int64 * 3)()
        self._library.ss_where(scan, event, field, where)
        start, length, kind = where
        if kind not in (_ABSENT, _STRING):
            raise Refused
        return text[start : start + length].decode() if kind == _STRING else None

    def _frame(self, scan: int, text: bytes, cls: EventClass, start: int, count: int) -> pl.DataFrame:
        ranges_only = cls.phases == {"X"}
        series = []
        for name, field in _BASE.items():
            if ranges_only and name in ("phase", "id"):  # known without looking
                constant = pl.Series(name, ["X" if name == "phase" else None], dtype=pl.String)
                series.append(constant.new_from_index(0, count))
                continue
            one = read_column(scan, text, field, _BASE_KINDS.get(name, "text"), start, count, name)
            series.append(one.fill_null("") if name == "name" and one.null_count() else one)
        made: dict[str, pl.Series] = {}
        for arg in cls.args:
            one = read_column(scan, text, self._field[arg.key], arg.kind, start, count, arg.column)
            made[arg.column] = made[arg.column].fill_null(one) if arg.column in made else one
        return pl.DataFrame([*series, *made.values()])


def _word_list(words: list[str]) -> tuple[bytes, ctypes.Array[ctypes.c_int32]]:
    """Words one after the other, and where each ends."""
    encoded = [word.encode() for word in words]
    return b"".join(encoded), int32s(list(accumulate(map(len, encoded))))
