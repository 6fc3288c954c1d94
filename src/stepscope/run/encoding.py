"""Values as bytes, for other processes and for the store: plain data and type names, so that nothing is executed.

Options and limits, answers and reasons: what is read back is equal to what was written, in type and content.
"""

from __future__ import annotations

import functools
import importlib
import io
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path, PurePath
from typing import Any

import msgspec
import polars as pl

from stepscope.errors import Unavailable
from stepscope.sources.native.library import Refused
from stepscope.sources.native.parquet import packed

_KIND = "kind"
_PLAIN = (str, bytes, bool, int, float, type(None))
_PARTS = {"tuple": tuple, "set": frozenset, "list": list}
_PACKED_ROWS = 1 << 16
"""Frames of so many rows are packed: a third of the size, and read in half the time. Chosen by us: of fewer rows,
opening a Parquet file takes longer."""
_REASON = ("question", "table", "ranks", "why", "causes", "of")
"""The fields of `Unavailable` besides its text."""


class NotSendable(Exception):
    """A value that cannot be encoded, or of a type that another process cannot import as it is defined in a notebook, a
    script or inside a function."""


def encoded(value: Any) -> bytes:
    """A value of an option (see `analysis.parameters.frozen`), an answer or a reason; raises `NotSendable`."""
    try:
        return msgspec.msgpack.encode(_outward(value))
    except (OverflowError, UnicodeEncodeError, RecursionError, pl.exceptions.PolarsError) as error:
        raise NotSendable(f"a value that cannot be encoded ({error})") from error


def decoded(data: bytes) -> Any:
    """The value encoded in bytes."""
    return _inward(msgspec.msgpack.decode(data))


def place_of(thing: Any) -> str:
    """The module and name with which another process can import a class or function; raises `NotSendable`."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "<locals>")
    if module in (None, "__main__") or "<" in name:
        raise NotSendable(f"{module}.{name}")
    return f"{module}:{name}"


def _outward(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    kind, content = _described(value)
    return {_KIND: kind, **content}


def _described(value: Any) -> tuple[str, dict[str, Any]]:
    """The kind of a value, and what it is made of."""
    if type(value) is dict:
        found: Any = "mapping", {"items": [[_outward(name), _outward(part)] for name, part in value.items()]}
    elif isinstance(value, Enum):
        found = "enum", {"type": place_of(type(value)), "name": value.name}
    elif isinstance(value, PurePath):
        found = "path", {"path": str(value)}
    elif type(value) is pl.DataFrame:
        found = _described_frame(value)
    elif type(value) is Unavailable:
        found = "reason", {"text": value.marked, "fields": [_outward(getattr(value, one)) for one in _REASON]}
    elif type(value) in _PARTS.values():
        kind = next(kind for kind, several in _PARTS.items() if type(value) is several)
        parts = [_outward(part) for part in value]
        # the order of a set differs between processes
        found = kind, {"parts": sorted(parts, key=repr) if kind == "set" else parts}
    elif hasattr(value, "_fields") or (is_dataclass(value) and not isinstance(value, type)):
        names = value._fields if hasattr(value, "_fields") else [one.name for one in fields(value) if one.init]
        content = {name: _outward(getattr(value, name)) for name in names}
        found = "fields", {"type": place_of(type(value)), "fields": content}
    else:
        raise NotSendable(type(value).__name__)
    return found  # type: ignore[no-any-return]


def _described_frame(frame: pl.DataFrame) -> tuple[str, dict[str, Any]]:
    if frame.height >= _PACKED_ROWS:
        with suppress(Refused):
            return "packed", {"rows": packed(frame)}
    return "frame", {"rows": frame.write_ipc_stream(None, compression="lz4").getvalue()}


def _inward(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    match data[_KIND]:
        case "mapping":
            value: Any = {_inward(name): _inward(part) for name, part in data["items"]}
        case "enum":
            value = _found(data["type"], Enum)[data["name"]]
        case "path":
            value = Path(data["path"])
        case "frame":
            value = pl.read_ipc_stream(data["rows"])
        case "packed":
            value = pl.read_parquet(io.BytesIO(data["rows"]))
        case "reason":
            value = Unavailable(data["text"], **dict(zip(_REASON, map(_inward, data["fields"]), strict=True)))
        case "fields":
            value = _found(data["type"])(**{name: _inward(part) for name, part in data["fields"].items()})
        case kind:
            value = _PARTS[kind](map(_inward, data["parts"]))
    return value


def _found(place: str, kind: type | None = None) -> Any:
    """The type of a value: an enumeration, a dataclass or a named tuple, and nothing else that could be called."""
    module, _, name = place.partition(":")
    found: Any = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    is_data = isinstance(found, type) and (is_dataclass(found) or hasattr(found, "_fields"))
    if not (is_data if kind is None else isinstance(found, type) and issubclass(found, kind)):
        raise TypeError(f"{place} is no type of a value")
    return found
