"""Loading the compiled decoder, and moving columns between it and Polars.

`STEPSCOPE_NATIVE=0` switches it off; `STEPSCOPE_NATIVE=1` makes it an error if it was not built or does not load.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

PATH = Path(__file__).with_name("_native.so")
_VERSION = 21

_new_capsule: Any = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_capsule_pointer: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
"""Function objects of our own: prototypes set on those of `ctypes.pythonapi` would count for the whole process."""


class Refused(Exception):
    """The input is not plain enough for the compiled decoder, or there is no compiled decoder."""


def load(path: Path = PATH) -> ctypes.CDLL:
    """The library, with the types of what its functions take and return.

    Raises:
        ImportError: If it was not built, cannot be loaded or does not fit this code.
    """
    if not path.is_file():
        raise ImportError("the decoder was not compiled when stepscope was installed", path=str(path))
    try:
        library = ctypes.CDLL(str(path))
        version = library.ss_version()
    except (OSError, AttributeError) as error:
        raise ImportError(f"the compiled decoder cannot be loaded: {error}", path=str(path)) from error
    if version != _VERSION:
        raise ImportError(f"the compiled decoder has version {version}; {_VERSION} is needed", path=str(path))
    pointer, long, number = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
    prototypes: dict[str, tuple[Any, list[Any]]] = {
        "ss_scan": (pointer, [pointer, long, ctypes.c_char_p, pointer, number, number]),
        "ss_table": (pointer, [ctypes.c_char_p, long, pointer, number]),
        "ss_free": (None, [pointer]),
        "ss_trim": (None, []),
        "ss_count": (long, [pointer]),
        "ss_end": (long, [pointer]),
        "ss_met": (number, [pointer, number]),
        "ss_where": (None, [pointer, long, number, pointer]),
        "ss_pairs": (number, [pointer, pointer, pointer, pointer, number]),
        "ss_sort": (number, [pointer, pointer, pointer, pointer, number, ctypes.c_char_p, pointer, pointer,
                             pointer, number, pointer]),
        "ss_places": (number, [pointer, pointer, long, pointer, pointer, number]),
        "ss_meant": (number, [pointer, long, pointer, pointer, pointer]),
        "ss_column": (number, [pointer, pointer, number, long, long, number, pointer, pointer]),
        "ss_columns": (number, [pointer, pointer, pointer, pointer, long, long, long, pointer, pointer]),
        "ss_nest": (number, [pointer, pointer, pointer, long, long, pointer, pointer, pointer, pointer]),
        "ss_lanes": (number, [pointer, pointer, pointer, pointer, long, long, pointer, pointer]),
        "ss_inside": (number, [pointer, pointer, pointer, long, pointer, pointer]),
        "ss_db_open": (pointer, [number, long, number, pointer, pointer, number]),
        "ss_db_rows": (long, [pointer, long, long]),
        "ss_db_columns": (number, [pointer, pointer, pointer]),
        "ss_db_close": (None, [pointer]),
        "ss_climb": (number, [pointer, long, pointer, long, pointer, long, pointer, pointer]),
        "ss_running": (number, [pointer, pointer, pointer, pointer, long, long, pointer, pointer, long, long, pointer,
                                pointer]),
        "ss_match": (number, [pointer, long, pointer, long, pointer, pointer]),
        "ss_neighbours": (number, [pointer, pointer, long, pointer, pointer, pointer, pointer]),
        "ss_hold": (number, [pointer, long, pointer, pointer, long, pointer, pointer]),
        "ss_distinct": (number, [pointer, long, pointer, pointer, pointer, pointer]),
        "ss_union": (number, [pointer, long, pointer, pointer]),
        "ss_sweep": (number, [pointer, pointer, number, number, pointer, pointer]),
        "ss_replay": (pointer, [pointer, long, long]),
        "ss_replay_free": (None, [pointer]),
        "ss_replay_left_out": (number, [pointer, pointer, pointer]),
        "ss_replay_lags": (number, [pointer, pointer, pointer, pointer]),
        "ss_replay_ends": (number, [pointer, pointer, pointer, pointer]),
        "ss_replay_last_ends": (number, [pointer, pointer, long, pointer, pointer]),
        "ss_replay_slack": (number, [pointer, pointer, long, pointer, pointer]),
        "ss_replay_paths": (number, [pointer, pointer, long, pointer, pointer]),
        "ss_pages": (pointer, [pointer, long, pointer]),
        "ss_pack": (pointer, [pointer, long, long, pointer]),
        "ss_unpack": (number, [pointer, pointer, long, long, ctypes.c_char_p, pointer, pointer]),
        "ss_packets": (pointer, [pointer, long, long, long, pointer, pointer, long, pointer]),
        "ss_free_bytes": (None, [pointer]),
        "ss_drop": (None, [pointer, pointer]),
    }  # fmt: skip
    for name, (result, arguments) in prototypes.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _chosen() -> ctypes.CDLL | None:
    """The library, or None if there is none or it is switched off."""
    wanted = os.environ.get("STEPSCOPE_NATIVE")
    if wanted == "0":
        return None
    try:
        return load()
    except ImportError:
        if wanted == "1":
            raise
        return None


_LIBRARY = _chosen()


def is_available() -> bool:
    """Whether there is a compiled decoder."""
    return _LIBRARY is not None


def loaded() -> ctypes.CDLL:
    """The compiled decoder.

    Raises:
        Refused: If there is none.
    """
    if _LIBRARY is None:
        raise Refused
    return _LIBRARY


def trim() -> None:
    """Give the memory of finished scans back to the system; worth it once a large trace is read."""
    if _LIBRARY is not None:
        _LIBRARY.ss_trim()


_WORD = ctypes.sizeof(ctypes.c_int64)
_TOGETHER_ROWS = 1 << 13
"""Columns with fewer rows take more time than memory."""


class _ArrowStruct(ctypes.Structure):
    """Room for an `ArrowArray` (80 bytes) or an `ArrowSchema` (72 bytes); only the library looks inside."""

    _fields_ = (("words", ctypes.c_int64 * 10),)


class NewColumn:
    """A column that the library fills, on its way into Polars."""

    def __init__(self) -> None:
        self._array, self._schema = _ArrowStruct(), _ArrowStruct()
        self.pointers = ctypes.byref(self._array), ctypes.byref(self._schema)
        """What functions of the library take."""
        self.addresses = ctypes.addressof(self._array), ctypes.addressof(self._schema)
        """The same for those that take several columns at once."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        structs = (self._schema, b"arrow_schema"), (self._array, b"arrow_array")
        schema, array = (_new_capsule(ctypes.addressof(struct), name, None) for struct, name in structs)
        return schema, array

    def series(self, name: str = "") -> pl.Series:
        """The column, once it is filled."""
        try:
            return pl.Series(self).alias(name)
        finally:  # nothing is left in it, unless Polars failed
            loaded().ss_drop(*self.pointers)

    def frame(self, names: list[str]) -> pl.DataFrame:
        """The columns of a struct, once it is filled, under these names.

        Of many rows each is taken over by itself: one that is kept must not keep the memory of the others.
        """
        try:
            if self._array.words[0] <= _TOGETHER_ROWS:
                frame: pl.DataFrame = pl.Series(self).struct.unnest()
                frame.columns = names
                return frame
            return pl.DataFrame([self._child(number).series(name) for number, name in enumerate(names)])
        finally:
            loaded().ss_drop(*self.pointers)

    def _child(self, number: int) -> NewColumn:
        """A column of a struct, which no longer has it."""
        child = NewColumn()
        for own, struct, children, release in (
            (child._array, self._array, 6, 8),
            (child._schema, self._schema, 5, 7),
        ):
            place = ctypes.c_void_p.from_address(struct.words[children] + number * _WORD).value or 0
            ctypes.memmove(ctypes.byref(own), place, (release + 2) * _WORD)
            ctypes.c_int64.from_address(place + release * _WORD).value = 0
        return child


class GivenFrame:
    """A frame of Polars for the library, in one chunk."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._stream = (frame.rechunk() if frame.n_chunks() > 1 else frame).__arrow_c_stream__()
        self.pointer = _capsule_pointer(self._stream, b"arrow_array_stream")
        """What functions of the library take, as long as this object is kept."""


class GivenColumns:
    """Columns of Polars for the library, each in one chunk."""

    def __init__(self, *columns: pl.Series) -> None:
        self._streams = [column.rechunk().__arrow_c_stream__() for column in columns]
        self.pointers: list[int] = [_capsule_pointer(stream, b"arrow_array_stream") for stream in self._streams]
        """What functions of the library take, as long as this object is kept."""


def pointers(addresses: Sequence[int]) -> ctypes.Array[ctypes.c_void_p]:
    """Several pointers as one argument."""
    return (ctypes.c_void_p * len(addresses))(*addresses)


class GivenText:
    """Bytes for the library, without copying them.

    Args:
        text: Bytes, or a view of some that may be written.
    """

    def __init__(self, text: bytes | memoryview) -> None:
        self._kept = text if isinstance(text, bytes) else ctypes.c_char.from_buffer(text)
        self.pointer = self._kept if isinstance(self._kept, bytes) else ctypes.addressof(self._kept)
        """What functions of the library take, as long as this object is kept."""


def int32s(values: list[int]) -> ctypes.Array[ctypes.c_int32]:
    return (ctypes.c_int32 * max(len(values), 1))(*values)
