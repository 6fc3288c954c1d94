"""Clusters of MindSpore 1.1 to 1.3: `cluster_profiler/<id>/profiler/*_<device>`, with a table of ranks above.

A rank table (`hccl.json`, or another JSON file that is one; see `rank_tables`) gives each server's devices their ranks,
and `host_ips_mapping.txt` maps folders to hosts: a line is `<ip> <id>`. Both are next to `cluster_profiler`. In a table
from which addresses were taken, servers have the ids of the folders instead. Hosts are called by these ids, as in the
mapping: it exists so that addresses are in no other file, and answers become files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from stepscope.sources.classic.files import Seat, entries_of, kind_of
from stepscope.sources.rank_tables import TABLE, beside, is_named, is_rank_table, places, unknown

FOLDER = "cluster_profiler"
MAPPING = "host_ips_mapping.txt"
_LARGEST = 16 << 20
_PAIR = re.compile(r"(\S+)\s+(\d+)")

Device = tuple[int, int]
"""Number of a host's folder, and of a device there."""


@dataclass(frozen=True)
class Entry:
    """A device in a rank table: its rank, and the address of its network interface."""

    rank: int
    nic: str | None


@dataclass(frozen=True)
class RankTable:
    """What the tables of a cluster say, by device.

    Args:
        entries: The devices with a rank.
        repeated: Devices whose rank another one has as well, and that rank.
        problem: What is wrong with the tables if they have no ranks.
    """

    entries: Mapping[Device, Entry]
    repeated: Mapping[Device, int]
    problem: str | None


@dataclass(frozen=True)
class Cluster:
    """The folders of all hosts of a job, in `path` (`cluster_profiler`)."""

    path: Path

    @property
    def files(self) -> tuple[Path, ...]:
        """The files with ranks and hosts that exist."""
        return tuple(file for file in (self._table_file, self._mapping_file) if file is not None)

    def seat(self, profile: Path, number: int) -> Seat:
        """Who wrote the files with `number` in their names, in the folder `profile`.

        That is the number of the device, or the rank if none of the numbers in the folder is a device of the host and
        all are its ranks. A device that the table lacks gets a number after all others, or, without a table, its place
        among the devices of all hosts.
        """
        folder, table = int(profile.parent.name), self._table
        place = (folder, self._by_rank.get((folder, number), number))
        host = profile.parent.name
        if (entry := table.entries.get(place)) is not None:
            return Seat(entry.rank, place[1], host, len(table.entries), None, entry.nic)
        known = [*table.entries, *(other for other in self._devices if other not in table.entries)]
        last = max((entry.rank for entry in table.entries.values()), default=-1)
        rank = last + 1 + known.index(place) - len(table.entries) if place in known else 0
        problem = table.problem
        if place in table.repeated:
            problem = f"the rank table {self._table_name} gives rank {table.repeated[place]} to another device as well"
        elif table.entries and any(at == folder for at, _ in table.entries):
            problem = f"the rank table {self._table_name} does not list device {number} of host {host}"
        elif table.entries and folder in self._numbers.values():
            problem = f"the rank table {self._table_name} does not list host {host}"
        elif table.entries:
            problem = f"{MAPPING} does not list the host of folder {folder}"
        return Seat(rank, number, host, None, problem, contradicted=bool(table.entries))

    @cached_property
    def _devices(self) -> list[Device]:
        """Numbers in the names of files, in the order of hosts and numbers."""
        found: set[Device] = set()
        for host in entries_of(self.path):
            if host.name.isdecimal():
                numbers = (kind_of(file.name) for file in entries_of(host / "profiler"))
                found |= {(int(host.name), at[1]) for at in numbers if at is not None and at[1] is not None}
        return sorted(found)

    @cached_property
    def _by_rank(self) -> Mapping[Device, int]:
        """The device of each rank, by folder and rank, in folders whose files are numbered by rank."""
        numbers: dict[int, set[int]] = {}
        for folder, number in self._devices:
            numbers.setdefault(folder, set()).add(number)
        devices: dict[int, dict[int, int]] = {}
        for (folder, device), entry in self._table.entries.items():
            devices.setdefault(folder, {})[entry.rank] = device
        return {
            (folder, rank): device
            for folder, of_rank in devices.items()
            if (there := numbers.get(folder)) and there <= of_rank.keys() and there.isdisjoint(of_rank.values())
            for rank, device in of_rank.items()
        }

    @cached_property
    def _table(self) -> RankTable:
        """The ranks from the tables."""
        if self._table_file is None:
            return RankTable({}, {}, f"there is no rank table ({TABLE}) next to {FOLDER}")
        entries: dict[Device, Entry] = {}
        repeated: dict[Device, int] = {}
        taken: set[int] = set()
        for place in places(self._table_file):
            folder = self._folder_of(place.names)
            if folder is None:
                continue
            if place.rank in taken:
                repeated[folder, place.device] = place.rank
                continue
            entries[folder, place.device] = Entry(place.rank, place.nic)
            taken.add(place.rank)
        if entries:
            return RankTable(entries, repeated, None)
        if self._mapping_file is None:
            return RankTable({}, {}, f"there is no {MAPPING} next to {FOLDER} to map folders to hosts")
        if not self._numbers:
            return RankTable({}, {}, f"{MAPPING} cannot be read, or has no line with an address and a number")
        lacks = f"the rank table {self._table_name} lists no server that is in {MAPPING}"
        if not places(self._table_file):
            lacks = f"the rank table {self._table_name} {unknown(self._table_file)}"
        return RankTable({}, {}, lacks)

    def _folder_of(self, named: Sequence[str]) -> int | None:
        """Number of the folder of a server: by its address, or its own name if that is the number of a folder."""
        found = next((self._numbers[name] for name in named if name in self._numbers), None)
        if found is not None or not named:
            return found
        return int(named[0]) if _is_number(named[0]) and (self.path / named[0]).is_dir() else None

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


def table_beside(profile: Path) -> Path | None:
    """The rank table in the directory of a flat profile, or in the one above it."""
    return beside(profile, profile.parent)


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
    """Names of the tables in a folder, mainly of one that holds or is a cluster; they are not recordings themselves."""
    if FOLDER not in names and directory.name != FOLDER:  # a table of any name may be a recording elsewhere
        return {name for name in names if is_named(directory / name) and is_rank_table(directory / name)}
    jsons = {name for name in names if name.endswith(".json")}
    tables = {name for name in jsons if name == TABLE or is_rank_table(directory / name)}
    return tables | ({MAPPING} & set(names))
