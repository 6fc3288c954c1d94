"""The reader of classic MindSpore profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from stepscope.recording_format.export_list import list_name
from stepscope.sources.base import Found, Input, Sink
from stepscope.sources.classic import legacy, raw_profiles
from stepscope.sources.classic.files import LABEL, Seat, is_known, kind_of, recorded_steps, sort_files

_FOLDERS = ("host_info", "msadvisor")
"""Folders of a profile whose files are its own."""


class ClassicSource:
    """Reads what MindSpore's own profiler wrote until 2.4."""

    name = "classic"
    version = 17
    family = "classic"
    reasons: Mapping[str, str] = {
        **dict.fromkeys(("operators", "kernels"), "MindSpore's own profiler kept only totals of them, or nothing"),
        **dict.fromkeys(("allocations", "memory_curve"), "older versions plan the memory of graphs instead"),
        **dict.fromkeys(("flows", "stacks"), "MindSpore's own profiler records none"),
    }
    own_tables = frozenset(
        {
            *("graphs", "graph_nodes", "graph_tensors", "flop_scopes", "communication_totals", "operator_steps"),
            *("rank_figures", "host_events", "pipeline_operators", "parallel_graphs", "parallel_nodes"),
        }
    )

    def find(self, directory: Path, names: Sequence[str]) -> Found | None:
        """A directory with files of a classic profile: one input a rank.

        Ranks of a cluster of folders (see `legacy`) go by the name of that cluster, whichever folder is named.
        """
        if raw_profiles.is_raw(directory.name):
            return self._raw(directory)
        kinds = {found[0] for name in names if (found := kind_of(name))}
        if kinds <= {"profiler_info"}:  # other profilers write one too
            tables = legacy.table_names(directory, names)
            return Found((), tuple(name for name in names if name not in tables)) if tables else None
        numbered = sort_files(_profile_files(directory, names))
        cluster = legacy.cluster_of(directory)
        if cluster is not None:
            inputs = [self._seated(cluster, cluster.seat(directory, n), files) for n, files in numbered.items()]
        else:
            raw = raw_profiles.newest_by_rank(directory, names, numbered)
            ranks = sorted({*numbered, *raw})
            table = legacy.table_beside(directory)
            beside = [] if table is None else [table]
            inputs = [self._ranked(directory, n, [*numbered.get(n, []), *raw.get(n, [])], beside) for n in ranks]
        known = legacy.table_names(directory, names)
        rest = tuple(name for name in names if not _is_ours(name) and name not in known)
        return Found(tuple(inputs), rest) if inputs else None

    def sniff(self, file: Path, head: bytes) -> Input | None:  # noqa: ARG002
        """One file of a profile, by its name: its content is not distinctive."""
        found = kind_of(file.name)
        if found is None or found[1] is None or found[0] == "profiler_info":  # which is useless by itself
            return None
        cluster = legacy.cluster_of(file.parent)
        if cluster is not None:
            return self._seated(cluster, cluster.seat(file.parent, found[1]), [(file.name, file)])
        return Input(self.name, file, (file,), f"{LABEL}{found[1]}")

    def read(self, item: Input, sink: Sink) -> None:
        """See `read_rank`."""
        from stepscope.sources.classic.reading import read_rank

        read_rank(item, sink)

    def _raw(self, directory: Path) -> Found | None:
        """An exported raw profile in a folder of its own: one input a device.

        A trace of several devices in one is left to others, as it does not show the device of its events.
        """
        devices = raw_profiles.newest_by_rank(directory.parent, [directory.name])
        enough = {"iterations", "device_trace"} if len(devices) == 1 else {"iterations"}
        inputs = [
            self._ranked(directory, rank, named)
            for rank, named in devices.items()
            if any(found[0] in enough for name, _ in named if (found := kind_of(name)))
        ]
        return Found(tuple(inputs)) if inputs else None

    def _ranked(self, directory: Path, rank: int, named: list[tuple[str, Path]], tables: Sequence[Path] = ()) -> Input:
        """The input of a rank; `tables` are of its job."""
        files = [*(file for _, file in named), *tables]
        listed = directory / list_name(rank)
        if recorded_steps(listed):
            files.append(listed)
        return Input(self.name, directory, tuple(files), f"{LABEL}{rank}")

    def _seated(self, cluster: legacy.Cluster, seat: Seat, named: list[tuple[str, Path]]) -> Input:
        """The input of a device in a cluster of folders; all have one path, so they belong to one job."""
        return Input(self.name, cluster.path, (*(file for _, file in named), *cluster.files), f"{LABEL}{seat.rank}")


def _profile_files(directory: Path, names: Sequence[str]) -> list[tuple[str, Path]]:
    """The files of a profile, those in its folders too, with their names relative to it; none of raw profiles."""
    found = [(name, directory / name) for name in names]
    for name in _FOLDERS:
        if name in names and (directory / name).is_dir():
            below = sorted((directory / name).rglob("*"))
            found += [(file.relative_to(directory).as_posix(), file) for file in below]
    return [(name, file) for name, file in found if kind_of(name) is not None]


def _is_ours(name: str) -> bool:
    return kind_of(name) is not None or is_known(name) or name in _FOLDERS or raw_profiles.is_raw(name)
