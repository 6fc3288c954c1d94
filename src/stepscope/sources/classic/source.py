"""The reader of classic MindSpore profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.recording_format.export_list import list_name
from stepscope.recording_format.reading import read_export_list
from stepscope.sources.base import Found, Input, Sink
from stepscope.sources.classic import legacy, raw_profiles
from stepscope.sources.classic.files import RankFiles, Seat, is_known, kind_of, rank_files, sort_files
from stepscope.sources.classic.parts import PARTS
from stepscope.sources.sinks import RecordedStepsSink
from stepscope.tables import ISSUES, RANKS, Table
from stepscope.tables.issues import Severity

_FOLDERS = ("host_info", "msadvisor")
"""Folders of a profile whose files are its own."""
_LABEL = "rank "


class ClassicSource:
    """Reads what MindSpore's own profiler wrote until 2.4."""

    name = "classic"
    version = 7
    family = "classic"
    reasons: Mapping[str, str] = {
        **dict.fromkeys(("operators", "kernels"), "MindSpore's own profiler kept only totals of them, or nothing"),
        **dict.fromkeys(("allocations", "memory_curve"), "older versions plan the memory of graphs instead"),
        **dict.fromkeys(("flows", "stacks"), "MindSpore's own profiler records none"),
    }
    own_tables = frozenset(
        {
            *("graphs", "graph_nodes", "graph_tensors", "flop_scopes", "communication_totals", "operator_steps"),
            *("rank_figures", "host_events", "pipeline_operators"),
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
            inputs = [self._ranked(directory, n, [*numbered.get(n, []), *raw.get(n, [])]) for n in ranks]
        rest = tuple(name for name in names if not _is_ours(name))
        return Found(tuple(inputs), rest) if inputs else None

    def sniff(self, file: Path, head: bytes) -> Input | None:  # noqa: ARG002
        """One file of a profile, by its name: its content is not distinctive."""
        found = kind_of(file.name)
        if found is None or found[1] is None or found[0] == "profiler_info":  # which is useless by itself
            return None
        cluster = legacy.cluster_of(file.parent)
        if cluster is not None:
            return self._seated(cluster, cluster.seat(file.parent, found[1]), [(file.name, file)])
        return Input(self.name, file, (file,), f"{_LABEL}{found[1]}")

    def read(self, item: Input, sink: Sink) -> None:
        """Read the files of one rank, each part by itself, so that a damaged one costs no other.

        Raises:
            UnreadableInput: If nothing of it can be read.
        """
        files = _files_of(item)
        counting = _Counting(sink)
        target = _by_own_numbers(files, item, counting)
        for part in PARTS:
            try:
                part(files, target)
            except UnreadableInput as error:
                counting.issue("error", Path(error.path), error.problem, error.remedy)
        if not counting.rows:
            if len(counting.damaged) == 1:
                raise counting.damaged.popitem()[1]
            raise UnreadableInput(
                item.path,
                f"none of the files of rank {files.rank} holds readable data",
                "Copy the profile again, or run the profiler's analysis again",
            )

    def _raw(self, directory: Path) -> Found | None:
        """An exported raw profile in a folder of its own: one input a device.

        A trace of several devices in one is left to others, as it does not show the device of its events.
        """
        devices = raw_profiles.by_rank(directory, directory)
        enough = {"iterations", "device_trace"} if len(devices) == 1 else {"iterations"}
        inputs = [
            self._ranked(directory, rank, named)
            for rank, named in devices.items()
            if any(found[0] in enough for name, _ in named if (found := kind_of(name)))
        ]
        return Found(tuple(inputs)) if inputs else None

    def _ranked(self, directory: Path, rank: int, named: list[tuple[str, Path]]) -> Input:
        """The input of a rank."""
        files = [file for _, file in named]
        listed = directory / list_name(rank)
        if _recorded_steps(listed):
            files.append(listed)
        return Input(self.name, directory, tuple(files), f"{_LABEL}{rank}")

    def _seated(self, cluster: legacy.Cluster, seat: Seat, named: list[tuple[str, Path]]) -> Input:
        """The input of a device in a cluster of folders; all have one path, so they belong to one job."""
        return Input(self.name, cluster.path, (*(file for _, file in named), *cluster.files), f"{_LABEL}{seat.rank}")


class _Counting:
    """A sink that knows whether anything but who recorded it came in, and what was wrong with each file."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.workers = sink.workers
        self.rows = 0
        self.damaged: dict[Path, UnreadableInput] = {}
        self.scratch = sink.scratch
        self.advance = sink.advance

    def write(self, table: Table, frame: pl.DataFrame) -> None:
        """Hand rows on."""
        if table not in (RANKS, ISSUES):
            self.rows += frame.height
        self._sink.write(table, frame)

    def issue(
        self,
        severity: Severity,
        file: Path,
        problem: str,
        remedy: str,
        *,
        place: str | None = None,
        lost: int | None = None,
    ) -> None:
        """Hand an issue on."""
        if severity != "note":
            self.damaged.setdefault(file, UnreadableInput(file, problem, remedy))
        self._sink.issue(severity, file, problem, remedy, place=place, lost=lost)


def _by_own_numbers(files: RankFiles, item: Input, sink: Sink) -> Sink:
    """The sink, or for files that were exported from a recording one that gives steps their recorded numbers."""
    listed = item.path / list_name(files.rank)
    steps = _recorded_steps(listed) if listed in item.files and files.one("step_trace") is not None else ()
    return RecordedStepsSink(sink, steps) if steps else sink


def _recorded_steps(listed: Path) -> tuple[int, ...]:
    """The recorded number of each step of exported files; empty if they were not exported, or it is unknown."""
    content = read_export_list(listed)
    return () if content is None else content.steps


def _files_of(item: Input) -> RankFiles:
    """The files of an input by kind; those of a cluster's folder have the number of the device, not of the rank."""
    rank = int(item.label.removeprefix(_LABEL))
    root = item.path if item.path.is_dir() else item.path.parent
    folder = _folder_of(item) if root.name == legacy.FOLDER else None
    if folder is None:
        return rank_files(item.path, rank, [(file.relative_to(root).as_posix(), file) for file in item.files])
    named = [(file.relative_to(folder).as_posix(), file) for file in item.files if folder in file.parents]
    numbers = [found[1] for name, _ in named if (found := kind_of(name)) and found[1] is not None]
    cluster = legacy.cluster_of(folder)
    seat = cluster.seat(folder, numbers[0]) if cluster is not None and numbers else None
    return rank_files(folder, rank, named, seat)


def _folder_of(item: Input) -> Path | None:
    """The folder of a cluster with the files of an input."""
    below = (file for file in item.files if item.path in file.parents and legacy.cluster_of(file.parent))
    first = next(below, None)
    return None if first is None else first.parent


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


__all__ = ["ClassicSource", "RankFiles"]
