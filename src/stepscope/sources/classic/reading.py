"""Reading the files of one rank of a classic profile into tables."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.recording_format.export_list import list_name
from stepscope.sources.base import Input, Sink
from stepscope.sources.classic import legacy
from stepscope.sources.classic.files import (
    LABEL,
    RankFiles,
    kind_of,
    rank_files,
    recorded_steps,
)
from stepscope.sources.classic.parts import PARTS
from stepscope.sources.sinks import RecordedStepsSink
from stepscope.tables import ISSUES, RANKS, Table
from stepscope.tables.issues import Severity


def read_rank(item: Input, sink: Sink) -> None:
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
    steps = recorded_steps(listed) if listed in item.files and files.one("step_trace") is not None else ()
    return RecordedStepsSink(sink, steps) if steps else sink


def _files_of(item: Input) -> RankFiles:
    """The files of an input by kind; those of a cluster's folder have the number of the device, not of the rank."""
    rank = int(item.label.removeprefix(LABEL))
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
