"""The rank table of a job without the addresses of its hosts: their ids take their place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from stepscope.cluster.layout import Seats
from stepscope.cluster.names import is_address
from stepscope.json_files import SMALL_BYTES, read_object
from stepscope.json_values import as_index

_V4 = r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])"
_V6 = r"(?<![\w:.])[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?![\w:])"
_ADDRESS = re.compile(f"{_V4}|{_V6}")
UNKNOWN = "hidden"
"""What takes the place of an address of which no host is known."""


def read_rank_table(file: Path) -> dict[str, Any]:
    """The rank table in a file.

    Raises:
        UnreadableInput: If it is none.
    """
    return read_object(file, "Pass the rank table (hccl.json) of the job", most_bytes=SMALL_BYTES)


def servers(table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The servers that a table lists."""
    listed = table.get("server_list")
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def seats(table: Mapping[str, Any], ids: Mapping[str, int]) -> dict[int, Seats]:
    """The devices and ranks of each host, by its id."""
    found: dict[int, Seats] = {}
    for server in servers(table):
        host = ids.get(str(server.get("server_id")))
        devices = [one for one in server.get("device") or [] if isinstance(one, Mapping)]
        if host is not None:
            numbers = [frozenset(n for one in devices if (n := as_index(one.get(key))) is not None) for key in _KEYS]
            found[host] = Seats(*numbers)
    return found


_KEYS = ("device_id", "rank_id")


def anonymous_table(table: Mapping[str, Any], ids: Mapping[str, int]) -> bytes:
    """A table in which no address and no name of a host is left.

    `server_id` becomes the host's id, an address of a device `<id>-<device>`, any other address the id of its host, or
    `hidden` if that is unknown. All else stays.

    Args:
        table: The rank table.
        ids: Names and addresses of hosts, and their ids.
    """
    known = {name: str(number) for name, number in ids.items()}
    pattern = "|".join(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])" for name in sorted(ids, key=len, reverse=True))
    names = re.compile(pattern) if pattern else None

    def cleaned(value: Any, host: str, device: str) -> Any:
        if isinstance(value, dict):
            own = str(ids.get(str(value.get("server_id")), "")) or (UNKNOWN if "server_id" in value else host)
            seat = str(value["device_id"]) if "device_id" in value else device
            seat = seat if seat.isdecimal() else ""
            changed = {}
            for key, one in value.items():
                if key == "server_id":
                    changed[key] = own
                else:
                    changed[text(str(key), own, "")] = cleaned(one, own, seat)
            return changed
        if isinstance(value, list):
            return [cleaned(one, host, device) for one in value]
        return text(value, host, device) if isinstance(value, str) else value

    def text(value: str, host: str, device: str) -> str:
        here = f"{host}-{device}" if device and host != UNKNOWN else host
        without = value if names is None else names.sub(lambda match: known[match[0]], value)
        return _ADDRESS.sub(lambda match: here if is_address(match[0]) else match[0], without)

    return msgspec.json.format(msgspec.json.encode(cleaned(dict(table), UNKNOWN, "")), indent=1) + b"\n"
