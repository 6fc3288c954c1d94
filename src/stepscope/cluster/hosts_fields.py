"""What the fields of a hosts file may be, and what is wrong with one in words of the file."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepscope.errors import StepscopeError
from stepscope.present import printable

_AT = re.compile(
    r"(?:(?P<user>[^@\s]+)@)?(?:\[(?P<v6>[^\]\s]+)\]|(?P<host>[^:@\[\]\s]+)|(?P<bare>[^@\[\]\s]*:[^@\[\]\s]*:[^@\[\]\s]*))"
    r"(?::(?P<port>\d{1,5}))?"
)
_ADDRESS = "an address, e.g. `address: 10.0.0.1`, `me@node-a:2222` or `[fd00::1]:2222`"
_PATTERN = "a pattern or a list of them, e.g. `source: '/data/run1/device*'`"
_KEY = "a file or a list of them, e.g. `key: ~/.ssh/id_ed25519`"

_EXPECTED = {
    "address": ("text", _ADDRESS),
    "name": ("text", "a text, e.g. `name: node-a` (a name of digits in quotes)"),
    "server_id": ("text", "a text, e.g. `server_id: 10.0.0.3`"),
    "user": ("text", "a text, e.g. `user: train` (a name of digits in quotes)"),
    "port": ("port", "a number from 1 to 65535, e.g. `port: 2222`"),
    "key": ("texts", _KEY),
    "jump": ("text", "a text, e.g. `jump: me@bastion:22`"),
    "known_hosts": ("text", "a file, e.g. `known_hosts: ~/.ssh/known_hosts`"),
    "source": ("texts", _PATTERN),
    "path": ("text", "a directory, e.g. `path: /mnt/node-d`"),
    "command": ("list", 'a list of words, e.g. `command: [kubectl, cp, "{host}:{source}", "{target}"]`'),
    "timeout_s": ("seconds", "a number of seconds above 0, e.g. `timeout_s: 600`"),
    "stepscope": ("text", "a command, e.g. `stepscope: /opt/venv/bin/stepscope`"),
}
FIELDS = tuple(_EXPECTED)


@dataclass(frozen=True)
class At:
    """Where SSH connects to, as `USER@HOST:PORT` states it."""

    host: str
    user: str | None
    port: int | None


def parsed_address(text: str) -> At | None:
    """The parts of `HOST`, `HOST:PORT`, `USER@HOST` or `[IPV6]:PORT`; None if it is no such text.

    Examples:
        >>> parsed_address("me@[fd00::1]:2222"), parsed_address("fd00::1"), parsed_address("a b")
        (At(host='fd00::1', user='me', port=2222), At(host='fd00::1', user=None, port=None), None)
    """
    match = _AT.fullmatch(text)
    if match is None:
        return None
    host = match["v6"] or match["host"] or match["bare"]
    port = None if match["port"] is None else int(match["port"])
    if host.startswith("-") or (port is not None and not 0 < port < 1 << 16):
        return None
    return At(host, match["user"], port)


def check_fields(file: object, content: Mapping[str, Any]) -> None:
    """Check what a hosts file states, one host after the other.

    Raises:
        StepscopeError: With the host, the field, what it is and what it should be.
    """
    if strange := [str(key) for key in content if key not in ("hosts", "defaults")]:
        raise StepscopeError(
            f"{file}: has {strange[0]!r} beside `hosts` and `defaults`. Remove it, or move it into one"
        )
    listed, defaults = content["hosts"], content.get("defaults", {})
    if not isinstance(listed, list):
        raise StepscopeError(f"{file}: `hosts` is {_what(listed)}, expected a list, e.g. `hosts: [10.0.0.1, 10.0.0.2]`")
    if not isinstance(defaults, Mapping):
        raise StepscopeError(
            f"{file}: `defaults` is {_what(defaults)}, expected fields, e.g. `defaults: {{user: train}}`"
        )
    _check_entry(f"{file}: defaults", defaults)
    for number, entry in enumerate(listed, 1):
        where = f"{file}: host {number}"
        if isinstance(entry, Mapping):
            _check_entry(f"{where}{_called(entry)}", entry)
        elif not isinstance(entry, str):
            raise StepscopeError(f"{where} is {_what(entry)}, expected {_ADDRESS}")


def _check_entry(where: str, entry: Mapping[Any, Any]) -> None:
    for key, value in entry.items():
        if key not in _EXPECTED:
            near = difflib.get_close_matches(str(key), FIELDS, 1)
            hint = f"Did you mean `{near[0]}`?" if near else f"Fields are {', '.join(FIELDS)}"
            raise StepscopeError(f"{where}: there is no field `{printable(str(key))[:80]}`. {hint}")
        kind, expected = _EXPECTED[key]
        if value is not None and not _fits(kind, value):
            raise StepscopeError(f"{where}: `{key}` is {_what(value)}, expected {expected}")


def _fits(kind: str, value: Any) -> bool:
    if kind in ("list", "texts") and isinstance(value, list):
        return all(isinstance(one, str) for one in value)
    if kind in ("text", "texts"):
        return isinstance(value, str)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    if kind == "port":
        return isinstance(value, int) and 0 < value < 1 << 16
    return math.isfinite(value) and value > 0


def _called(entry: Mapping[Any, Any]) -> str:
    """How the user calls a host, in brackets."""
    name = next((entry[key] for key in ("name", "address", "path") if isinstance(entry.get(key), str)), None)
    return "" if name is None else f" ({printable(name)[:80]})"


def _what(value: Any) -> str:
    """A value in the words of a hosts file."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text '{printable(value)[:80]}'"
    if isinstance(value, (list, Mapping)):
        inside = "a list" if isinstance(value, list) else "a group of fields"
        return f"an empty {inside[2:]}" if not value else inside
    return "a date" if hasattr(value, "isoformat") else "something else"
