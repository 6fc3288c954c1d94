"""Options and limits as bytes: plain data and type names, so that nothing is executed when reading them."""

from __future__ import annotations

import importlib
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path, PurePath
from typing import Any

import msgspec

_KIND = "kind"
_PLAIN = (str, bytes, bool, int, float, type(None))


class NotSendable(Exception):
    """A value of a type that another process cannot import: defined in a notebook, a script or inside a function."""


def encoded(value: Any) -> bytes:
    """A value of an option (see `analysis.parameters.frozen`), or a mapping of them, as bytes.

    Raises:
        NotSendable: If another process cannot import one of its types.
    """
    return msgspec.msgpack.encode(_outward(value))


def decoded(data: bytes) -> Any:
    """The value encoded in bytes."""
    return _inward(msgspec.msgpack.decode(data))


def place_of(thing: Any) -> str:
    """The module and name with which another process can import a class or function.

    Raises:
        NotSendable: If it cannot.
    """
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", "<locals>")
    if module in (None, "__main__") or "<" in name:
        raise NotSendable(f"{module}.{name}")
    return f"{module}:{name}"


def _outward(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, dict):
        return {_KIND: "mapping", "items": [[name, _outward(part)] for name, part in value.items()]}
    if isinstance(value, Enum):
        return {_KIND: "enum", "type": place_of(type(value)), "name": value.name}
    if isinstance(value, PurePath):
        return {_KIND: "path", "path": str(value)}
    if isinstance(value, (tuple, frozenset)):
        return {_KIND: "tuple" if isinstance(value, tuple) else "set", "parts": [_outward(part) for part in value]}
    if is_dataclass(value) and not isinstance(value, type):
        content = {one.name: _outward(getattr(value, one.name)) for one in fields(value) if one.init}
        return {_KIND: "dataclass", "type": place_of(type(value)), "fields": content}
    raise NotSendable(type(value).__name__)


def _inward(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    match data[_KIND]:
        case "mapping":
            value: Any = {name: _inward(part) for name, part in data["items"]}
        case "enum":
            value = _found(data["type"])[data["name"]]
        case "path":
            value = Path(data["path"])
        case "tuple":
            value = tuple(map(_inward, data["parts"]))
        case "set":
            value = frozenset(map(_inward, data["parts"]))
        case _:
            value = _found(data["type"])(**{name: _inward(part) for name, part in data["fields"].items()})
    return value


def _found(place: str) -> Any:
    module, _, name = place.partition(":")
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found
