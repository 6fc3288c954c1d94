"""Clusters of MindSpore 1.1 to 1.3: `cluster_profiler/<id>/profiler/*_<device>`, with a table of ranks above.

A rank table (`hccl.json`, or another JSON file with a `server_list`) gives each server's devices their ranks, and
`host_ips_mapping.txt` maps folders to hosts: a line is `<ip> <id>`. Both are next to `cluster_profiler`. A table may
also name its servers by the ids of their folders, so that no address is in it; it then needs no mapping.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from stepscope.json_values import as_index, list_of
from stepscope.sources.classic.files import Seat, entries_of, kind_of
from stepscope.sources.side_files import peek_object

FOLDER = "cluster_profiler"
MAPPING = "host_ips_mapping.txt"
TABLE = "hccl.json"
_LARGEST = 16 << 20
_PAIR = re.compile(r"(\S+)\s+(\d+)")

Device = tuple[int, int]
"""Number of a host's folder, and of a device there."""


@dataclass(frozen=True)
class Cluster:
    """The folders of all hosts of a job, in `path` (`cluster_profiler`)."""

    path: Path

    @property
    def files(self) -> tuple[Path, ...]:
        """The files with ranks and hosts that exist."""
        return tuple(file for file in (self._table_file, self._mapping_file) if file is not None)

    def seat(self, profile: Path, device: int) -> Seat:
        """Who wrote the files of `device` in the folder `profile`.

        Taken from the table; a device that it lacks gets a number after all others, or, without a table, its
        place among the devices of all hosts.
        """
        place = (int(profile.parent.name), device)
        ranks, problem = self._ranks
        host = self._hosts.get(place[0], profile.parent.name)
        if place in ranks:
            return Seat(ranks[place], device, host, len(ranks), None)
        known = [*ranks, *(other for other in self._devices if other not in ranks)]
        rank = max(ranks.values(), default=-1) + 1 + known.index(place) - len(ranks) if place in known else 0
        if ranks and place[0] in self._hosts:
            problem = f"the rank table {self._table_name} does not list device {device} of host {host}"
        elif ranks:
            problem = f"{MAPPING} does not list the host of folder {place[0]}"
        return Seat(rank, device, host, None, problem)

    @cached_property
    def _devices(self) -> list[Device]:
        """Devices that have files, in the order of hosts and numbers."""
        found: set[Device] = set()
        for host in entries_of(self.path):
            if host.name.isdecimal():
                numbers = (kind_of(file.name) for file in entries_of(host / "profiler"))
                found |= {(int(host.name), at[1]) for at in numbers if at is not None and at[1] is not None}
        return sorted(found)

    @cached_property
    def _ranks(self) -> tuple[Mapping[Device, int], str | None]:
        """Ranks from the tables, and what is wrong with the tables if they have none."""
        if self._table_file is None:
            return {}, f"there is no rank table ({TABLE}) next to {FOLDER}"
        servers = _objects(peek_object(self._table_file), "server_list")
        numbers = {**self._numbers, **self._folders_named(servers)}
        if not numbers and self._mapping_file is None:
            return {}, f"there is no {MAPPING} next to {FOLDER} to map folders to hosts"
        if not numbers:
            return {}, f"{MAPPING} cannot be read, or has no line with an address and a number"
        ranks: dict[Device, int] = {}
        taken: set[int] = set()
        for server in servers:
            for device in _objects(server, "device"):
                place = (numbers.get(str(server.get("server_id"))), as_index(device.get("device_id")))
                rank = as_index(device.get("rank_id"))
                if place[0] is not None and place[1] is not None and rank is not None and rank not in taken:
                    ranks[place[0], place[1]] = rank
                    taken.add(rank)
        damaged = f"the rank table {self._table_name} cannot be read, or lists no server that is in {MAPPING}"
        return ranks, None if ranks else damaged

    @cached_property
    def _hosts(self) -> Mapping[int, str]:
        """Folder's number to address of the host, the first of several."""
        return {number: address for address, number in reversed([*self._numbers.items()])}

    def _folders_named(self, servers: Sequence[Mapping[str, Any]]) -> Mapping[str, int]:
        """The numbers of folders by which a table without addresses names its servers."""
        named = {str(server.get("server_id")) for server in servers} - self._numbers.keys()
        return {name: int(name) for name in named if _is_number(name) and (self.path / name).is_dir()}

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        """Address of a host to the number of its folder."""
        if self._mapping_file is None:
            return {}
        try:
            with self._mapping_file.open("rb") as file:
                lines = file.read(_LARGEST).decode("utf-8-sig", "replace").splitlines()
        except OSError:
            return {}
        pairs = [match for line in lines if (match := _PAIR.fullmatch(line.strip()))]
        return {match[1]: int(match[2]) for match in pairs if len(match[2]) < 10}

    @cached_property
    def _table_file(self) -> Path | None:
        for folder in (self.path.parent, self.path):
            if (folder / TABLE).is_file():
                return folder / TABLE
            others = [file for file in entries_of(folder) if file.suffix == ".json" and file.is_file()]
            if found := next((file for file in others if is_rank_table(file)), None):
                return found
        return None

    @property
    def _table_name(self) -> str:
        return self._table_file.name if self._table_file is not None else TABLE

    @cached_property
    def _mapping_file(self) -> Path | None:
        places = (folder / MAPPING for folder in (self.path.parent, self.path))
        return next((file for file in places if file.is_file()), None)


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) < 10


def cluster_of(profile: Path) -> Cluster | None:
    """The cluster of a host's `profiler` folder; None for any other folder."""
    host = profile.parent
    if host.parent.name != FOLDER or not host.name.isdecimal():
        return None
    return _cluster(host.parent, _changed(host.parent))


@lru_cache(maxsize=4)
def _cluster(path: Path, _changed: tuple[int, ...]) -> Cluster:
    """The same cluster for each of its hosts: it looks at all of them."""
    return Cluster(path)


def _changed(cluster: Path) -> tuple[int, ...]:
    """When the tables of a cluster and the folders of its hosts were last changed, in ns."""
    files = Cluster(cluster).files
    return tuple(map(_changed_ns, (cluster, *files, *(host / "profiler" for host in entries_of(cluster)))))


def _changed_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def table_names(directory: Path, names: Sequence[str]) -> set[str]:
    """Names of the tables in a folder that holds or is a cluster; they are not recordings themselves."""
    if FOLDER not in names and directory.name != FOLDER:
        return set()
    jsons = {name for name in names if name.endswith(".json")}
    tables = {name for name in jsons if name == TABLE or is_rank_table(directory / name)}
    return tables | ({MAPPING} & set(names))


def is_rank_table(file: Path) -> bool:
    """Whether a JSON file lists the ranks of servers and their devices."""
    return bool(_objects(peek_object(file), "server_list"))


def _objects(part: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    return [one for one in list_of(part, key) if isinstance(one, Mapping)]
