"""Rank tables (`hccl.json`): which rank each device of each host is, in any of their templates.

Templates 1.0 and 1.2 list devices by server (`server_list`), also in groups of servers (`server_group_list`). An older
one lists them by instance (`group_list`, `instance_list`), and 2.0 by rank (`rank_list`), without hosts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from stepscope.json_values import as_index, as_text, list_of
from stepscope.sources.base import Sink
from stepscope.sources.side_files import peek_object

TABLE = "hccl.json"
_NAMED = re.compile(r"(?i)(hccl|hccl_\d+p[\w.-]*|[\w.-]*rank_?table[\w.-]*)\.json")
"""Names of rank tables, e.g. `hccl_8p_01234567_10.0.0.1.json`, `rank_table_8pcs.json`; a raw profile of the device has
files such as `hccl_0_1_1.json`."""

_HOST = ("server_id", "host_ip", "server_ip", "container_ip")
"""What a rank table may call a server."""

_DEVICE_LISTS = ("device", "devices", "device_list")
_RANK = ("rank_id", "rankId", "rankid", "rank")
_DEVICE = ("device_id", "deviceId", "deviceid")
_ADDRESS = ("device_ip", "deviceIp", "deviceip")
"""Keys of lists and numbers; templates differ in them."""


@dataclass(frozen=True)
class Place:
    """A device in a rank table.

    Args:
        rank: Its rank.
        device: Its number on the host.
        names: What the table calls the host, its id first; none in a table without hosts.
        nic: Address of its network interface.
    """

    rank: int
    device: int
    names: tuple[str, ...]
    nic: str | None

    @property
    def host(self) -> str | None:
        """What the table calls the host."""
        return self.names[0] if self.names else None


def is_named(file: Path) -> bool:
    """Whether a file is called as rank tables are."""
    return _NAMED.fullmatch(file.name) is not None


def is_rank_table(file: Path) -> bool:
    """Whether a JSON file is a rank table; one that is called so may be of a version that is not known."""
    table = peek_object(file)
    return any(True for _ in _hosts(table)) or bool(_by_rank(table)) or (is_named(file) and _version(table) is not None)


def places(file: Path) -> Sequence[Place]:
    """The devices with a rank, in the order of the file."""
    return _places(file, _changed_ns(file))


@lru_cache(maxsize=8)
def _places(file: Path, _changed_ns: int) -> Sequence[Place]:
    """The same for each rank of a job."""
    table = peek_object(file)
    found = [place for host in _hosts(table) for place in _of_host(host)]
    return (*found, *(place for one in _by_rank(table) if (place := _place(one, None, one)) is not None))


@lru_cache(maxsize=8)
def _hosts_of_names(file: Path, changed_ns: int) -> Mapping[str, str | None]:
    """The host that each name in a table means."""
    return {name: place.host for place in _places(file, changed_ns) for name in place.names}


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def unknown(file: Path) -> str:
    """Why a table has no places, in the words of an issue."""
    table = peek_object(file)
    if any(True for _ in _hosts(table)) or _by_rank(table):
        return "lists no device with a rank"
    version = _version(table)
    return "cannot be read" if version is None else f"is a rank table of version {version}, which is not known"


def beside(*folders: Path) -> Path | None:
    """The rank table in the first of several folders that has one; `hccl.json` before others."""
    found = (_table_in(folder, _changed_ns(folder)) for folder in folders)
    return next((file for file in found if file is not None), None)


@lru_cache(maxsize=64)
def _table_in(folder: Path, _changed_ns: int) -> Path | None:
    """The same table for each rank beside it."""
    try:
        named = sorted((file for file in folder.iterdir() if is_named(file)), key=lambda file: file.name != TABLE)
    except OSError:
        return None
    return next((file for file in named if file.is_file() and is_rank_table(file)), None)


def place_of(file: Path, rank: int, world: int | None, sink: Sink) -> Place | None:
    """The place of a rank, unless the table is of another job, or is not understood; that is reported."""
    found = places(file)
    counts = Counter(one.rank for one in found)
    own = [one for one in found if one.rank == rank]
    if len(own) == 1 and world in (None, len(counts)):
        return own[0]
    lists = f"lists {len(counts)} ranks"
    why = (
        unknown(file)
        if not found
        else f"lists rank {rank} {len(own)} times"
        if len(own) > 1
        else f"{lists}, not rank {rank}"
        if not own
        else f"{lists}, but the job has {world}"
    )
    remedy = "Put the rank table of this job beside it, or move that table elsewhere"
    sink.issue("warning", file, f"{why}, so it is not used: host and device stay unknown", remedy)
    return None


def differences(file: Path, place: Place, host: str | None, device: int | None) -> Iterator[str]:
    """What the recording of a rank says otherwise than its place in a table."""
    if device is not None and device != place.device:
        yield f"gives device {place.device} to rank {place.rank}, but its recording is of device {device}"
    if host is not None and _hosts_of_names(file, _changed_ns(file)).get(host, place.host) != place.host:
        yield f"has rank {place.rank} on host {place.host}, but its recording is of host {host}"


def _version(table: Mapping[str, Any]) -> str | None:
    version = table.get("version")
    return str(version)[:20] if isinstance(version, (str, int, float)) and "status" in table else None


def _hosts(table: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The hosts of a table, or parts of them, each with its devices."""
    yield from _objects(table, "server_list")
    for group in _objects(table, "server_group_list"):
        yield from _objects(group, "server_list")
    for group in _objects(table, "group_list"):
        yield from _objects(group, "instance_list")
        yield from _objects(group, "server_list")


def _by_rank(table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for one in _objects(table, "rank_list") if _first(one, _RANK) is not None]


def _of_host(host: Mapping[str, Any]) -> Iterator[Place]:
    """The devices of a host with their ranks; the rank of an instance is that of its only device."""
    devices = [one for key in _DEVICE_LISTS for one in _objects(host, key)]
    for device in devices:
        if (place := _place(device, host if len(devices) == 1 else None, host)) is not None:
            yield place


def _place(device: Mapping[str, Any], ranked: Mapping[str, Any] | None, host: Mapping[str, Any]) -> Place | None:
    rank, number = _first(device, _RANK), _first(device, _DEVICE)
    if rank is None and ranked is not None:
        rank = _first(ranked, _RANK)
    if rank is None or number is None:
        return None
    names = tuple(str(host[key]) for key in _HOST if host.get(key) is not None)
    return Place(rank, number, names, _nic(device))


def _nic(device: Mapping[str, Any]) -> str | None:
    """The address with which it reaches other hosts."""
    own = next((address for key in _ADDRESS if (address := as_text(device.get(key)))), None)
    levels = sorted(_objects(device, "level_list"), key=lambda level: as_index(level.get("net_layer")) in (0, None))
    every = (as_text(one.get("addr")) for level in levels for one in _objects(level, "rank_addr_list"))
    return own or next((address for address in every if address), None)


def _first(part: Mapping[str, Any], keys: Iterable[str]) -> int | None:
    return next((number for key in keys if (number := as_index(part.get(key))) is not None), None)


def _objects(part: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    return [one for one in list_of(part, key) if isinstance(one, Mapping)]
