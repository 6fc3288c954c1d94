"""The compiled decoder, where one was built: text of some events -> a batch of columns.

It takes clean JSON only and refuses the rest, which `decode` then reads in Python; likewise the CSV files of exports,
of which it takes plain ones only. `_scan.c` is compiled when the package is built on a machine with a C compiler;
without it, or with `STEPSCOPE_NATIVE=0`, nothing is lost but speed.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import polars as pl

from stepscope.sources.trace_events.base import EventClass, Layout
from stepscope.sources.trace_events.routes import Route, route

LIBRARY = Path(__file__).with_name("_scan.so")
_VERSION = 6
_MOST_PAIRS = 512
_ABSENT, _STRING = 0, 2
_TEXT, _JSON, _INT, _FLOAT, _TIME = range(5)
_KINDS = {"text": _TEXT, "json": _JSON, "int": _INT, "float": _FLOAT}
_BASE = {"phase": 0, "name": 1, "category": 2, "process": 3, "thread": 4, "start_ns": 5, "duration_us": 6, "id": 7}
_ARGUMENTS = len(_BASE)
_BASE_KINDS = {"start_ns": _TIME, "duration_us": _FLOAT}


class _ArrowStruct(ctypes.Structure):
    """Room for an `ArrowArray` (80 bytes) or an `ArrowSchema` (72 bytes); only the library looks inside."""

    _fields_ = (("words", ctypes.c_int64 * 10),)


def load() -> ctypes.CDLL | None:
    """The library, or None if it was not built, is switched off or does not fit this code."""
    if os.environ.get("STEPSCOPE_NATIVE", "1") == "0" or not LIBRARY.is_file():
        return None
    try:
        library = ctypes.CDLL(str(LIBRARY))
        if library.ss_version() != _VERSION:
            return None
    except (OSError, AttributeError):
        return None
    library.ss_scan.restype = library.ss_table.restype = ctypes.c_void_p
    library.ss_count.restype = library.ss_end.restype = ctypes.c_int64
    for function in (library.ss_count, library.ss_end, library.ss_free):
        function.argtypes = [ctypes.c_void_p]
    library.ss_free.restype = None
    return library


_LIBRARY = load()


def is_there() -> bool:
    """Whether there is a compiled decoder."""
    return _LIBRARY is not None


class _Column:
    """An Arrow array on its way into Polars."""

    def __init__(self) -> None:
        self.array, self.schema = _ArrowStruct(), _ArrowStruct()

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return _capsule(self.schema, b"arrow_schema"), _capsule(self.array, b"arrow_array")


def _capsule(struct: _ArrowStruct, name: bytes) -> object:
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(ctypes.addressof(struct), name, None)


def trim() -> None:
    """Give the memory of finished scans back to the system; worth it once a large trace is read."""
    if _LIBRARY is not None:
        _LIBRARY.ss_trim()


def nest(threads: pl.Series, starts: pl.Series, durations: pl.Series) -> pl.DataFrame:
    """`parent` (row of the enclosing range, null at the top) and `depth` of ranges in any order.

    Args:
        threads: Int64, small numbers from 0 on.
        starts: Int64.
        durations: Int64.

    Raises:
        Refused: If there is no library, or it has no room, or the columns are something else.
    """
    if _LIBRARY is None or not len(threads):
        raise Refused
    most = threads.max()
    if not isinstance(most, int):
        raise Refused
    parent, depth = _Column(), _Column()
    streams = [_stream(series) for series in (threads, starts, durations)]
    pointers = [ctypes.byref(struct) for one in (parent, depth) for struct in (one.array, one.schema)]
    sizes = ctypes.c_int64(len(threads)), ctypes.c_int64(most + 1)
    if _LIBRARY.ss_nest(*map(_stream_pointer, streams), *sizes, *pointers) < 0:
        raise Refused
    return pl.DataFrame([pl.Series(parent).alias("parent"), pl.Series(depth).alias("depth")])


def time_inside(starts: pl.Series, durations: pl.Series, parents: pl.Series) -> pl.Series:
    """Time of each range that the ranges take whose parent it is, as far as they lie in it.

    Args:
        starts: Int64.
        durations: Int64.
        parents: Int64, row of the enclosing range, or null.

    Raises:
        Refused: If there is no library, or it has no room, or the columns are something else.
    """
    if _LIBRARY is None or parents.dtype != pl.Int64 or not len(parents):
        raise Refused
    spent = _Column()
    streams = [_stream(series) for series in (starts, durations, parents)]
    pointers = ctypes.byref(spent.array), ctypes.byref(spent.schema)
    if _LIBRARY.ss_inside(*map(_stream_pointer, streams), ctypes.c_int64(len(parents)), *pointers) < 0:
        raise Refused
    return pl.Series(spent)


def _stream(series: pl.Series) -> object:
    """A column for the library, in one chunk."""
    return series.rechunk().__arrow_c_stream__()


def _stream_pointer(capsule: object) -> ctypes.c_void_p:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    get.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_void_p(get(capsule, b"arrow_array_stream"))


class Refused(Exception):
    """The text is not plain enough for the compiled decoder."""


TableColumn = Literal["raw", "text", "shape", "time", "number"]
"""How a field of a CSV table is kept: as it stands, without blanks around it, without quotes around it, as exact ns
(from decimal us), or as float64."""
_TABLE_COLUMNS: dict[TableColumn | None, int] = {None: 0, "raw": 1, "text": 2, "shape": 3, "time": 4, "number": 5}


def read_table(text: bytes, columns: Sequence[TableColumn | None]) -> list[pl.Series]:
    """The columns of a CSV table with a header, `N/A`, `NA` and empty fields as null.

    Args:
        text: The whole file.
        columns: How each of its columns is kept; None leaves one out.

    Raises:
        Refused: If there is no library, or if anything but whole lines of plain fields stands in the table.
    """
    if _LIBRARY is None:
        raise Refused
    kinds = _int32([_TABLE_COLUMNS[column] for column in columns])
    scan = _LIBRARY.ss_table(text, ctypes.c_int64(len(text)), kinds, len(columns))
    if not scan:
        raise Refused
    try:
        rows = _LIBRARY.ss_count(scan)
        as_read: dict[TableColumn, int] = {"time": _TIME, "number": _FLOAT}
        kept = [column for column in columns if column is not None]
        return [
            _column(_LIBRARY, scan, text, "", field, 0, rows, as_read.get(column, _TEXT))
            for field, column in enumerate(kept)
        ]
    finally:
        _LIBRARY.ss_free(scan)


def _column(
    library: ctypes.CDLL, scan: int, text: bytes, name: str, field: int, start: int, count: int, kind: int
) -> pl.Series:
    """One field of the rows from `start` on."""
    column = _Column()
    arguments: tuple[Any, ...] = (ctypes.c_void_p(scan), text, field, ctypes.c_int64(start), ctypes.c_int64(count))
    if library.ss_column(*arguments, kind, ctypes.byref(column.array), ctypes.byref(column.schema)) < 0:
        raise Refused
    return pl.Series(column).alias(name)


class NativeDecoder:
    """Decodes clean chunks of one layout; safe to use from several threads at once.

    Raises:
        Refused: On construction, if there is no library.
    """

    def __init__(self, layout: Layout) -> None:
        if _LIBRARY is None:
            raise Refused
        self._library = _LIBRARY
        self._classes = layout.classes
        keys = list(dict.fromkeys(arg.key for cls in layout.classes for arg in cls.args))
        self._field = {key: _ARGUMENTS + n for n, key in enumerate(keys)}
        self._words, self._ends = _word_list(keys)

    def decode(self, text: bytes, *, last: bool) -> tuple[dict[str, pl.DataFrame], dict[tuple[str, str], int], int]:
        """Decode a chunk.

        Returns:
            Raw frames by class (`phase`, the base columns with `duration_us`, the arguments), events of no class by
            phase and category, and where the text behind the array begins (-1 unless `last`).

        Raises:
            Refused: If anything in it is not clean JSON of the usual shape.
        """
        with self._scanned(text, last=last) as scan:
            counts, left = self._sort(scan, text)
            frames: dict[str, pl.DataFrame] = {}
            start = 0
            for cls, count in zip(self._classes, counts, strict=True):
                if count:
                    frames[cls.name] = self._frame(scan, text, cls, start, count)
                start += count
            return frames, left, self._library.ss_end(scan)

    @contextmanager
    def _scanned(self, text: bytes, *, last: bool) -> Iterator[int]:
        scan = self._library.ss_scan(
            text, ctypes.c_int64(len(text)), self._words, self._ends, len(self._field), int(last)
        )
        if not scan:
            raise Refused
        try:
            yield scan
        finally:
            self._library.ss_free(scan)

    def _sort(self, scan: int, text: bytes) -> tuple[list[int], dict[tuple[str, str], int]]:
        """Sort the events into classes; returns the size of each class, and what belongs to none."""
        handle = ctypes.c_void_p(scan)
        pairs = (ctypes.c_int32 * max(self._library.ss_count(scan), 1))()
        firsts = (ctypes.c_int32 * _MOST_PAIRS)()
        known = self._library.ss_pairs(handle, text, pairs, firsts, _MOST_PAIRS)
        if known < 0:
            raise Refused
        labels = [(self._label(scan, text, first, 0), self._label(scan, text, first, 2)) for first in firsts[:known]]
        routes = [route(self._classes, phase or "", category) for phase, category in labels]
        rules = [(n, name, cls) for n, one in enumerate(routes) for name, cls in one.by_name.items()]
        words, ends = _word_list([name for _, name, _ in rules])
        counts, left = (ctypes.c_int64 * len(self._classes))(), (ctypes.c_int64 * max(known, 1))()
        status = self._library.ss_sort(
            handle,
            text,
            pairs,
            known,
            _int32([_default(one) for one in routes]),
            len(self._classes),
            words,
            ends,
            _int32([n for n, _, _ in rules]),
            _int32([cls for _, _, cls in rules]),
            len(rules),
            counts,
            left,
        )
        if status < 0:
            raise Refused
        skipped: dict[tuple[str, str], int] = {}
        for (phase, category), count in zip(labels, left, strict=False):
            if count:
                key = (phase or "", category or "")
                skipped[key] = skipped.get(key, 0) + count
        return list(counts), skipped

    def _label(self, scan: int, text: bytes, event: int, field: int) -> str | None:
        where = (ctypes.c_int64 * 3)()
        self._library.ss_where(ctypes.c_void_p(scan), ctypes.c_int64(event), field, where)
        start, length, kind = where
        if kind not in (_ABSENT, _STRING):
            raise Refused
        try:
            return text[start : start + length].decode() if kind == _STRING else None
        except UnicodeDecodeError:
            raise Refused from None

    def _frame(self, scan: int, text: bytes, cls: EventClass, start: int, count: int) -> pl.DataFrame:
        ranges_only = cls.phases == {"X"}
        series = []
        for name, field in _BASE.items():
            if ranges_only and name in ("phase", "id"):  # known without looking
                constant = pl.Series(name, ["X" if name == "phase" else None], dtype=pl.String)
                series.append(constant.new_from_index(0, count))
                continue
            one = self._column(scan, text, name, field, start, count, _BASE_KINDS.get(name, _TEXT))
            series.append(one.fill_null("") if name == "name" and one.null_count() else one)
        made: dict[str, pl.Series] = {}
        for arg in cls.args:
            one = self._column(scan, text, arg.column, self._field[arg.key], start, count, _KINDS[arg.kind])
            made[arg.column] = made[arg.column].fill_null(one) if arg.column in made else one
        return pl.DataFrame([*series, *made.values()])

    def _column(self, scan: int, text: bytes, name: str, field: int, start: int, count: int, kind: int) -> pl.Series:
        return _column(self._library, scan, text, name, field, start, count, kind)


def _default(one: Route) -> int:
    return -1 if one.any_name is None else one.any_name


def _word_list(words: list[str]) -> tuple[bytes, ctypes.Array[ctypes.c_int32]]:
    """Words one behind the other, and where each ends."""
    encoded = [word.encode() for word in words]
    ends, at = [], 0
    for word in encoded:
        at += len(word)
        ends.append(at)
    return b"".join(encoded), _int32(ends)


def _int32(values: list[int]) -> ctypes.Array[ctypes.c_int32]:
    return (ctypes.c_int32 * max(len(values), 1))(*values)
