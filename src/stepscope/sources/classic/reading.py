"""Reading the files of one rank of a classic profile into tables."""

from __future__ import annotations

from pathlib import Path

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
from stepscope.sources.sinks import CountingSink, RecordedStepsSink


def read_rank(item: Input, sink: Sink) -> None:
    """Read the files of one rank, each part by itself, so that a damaged one costs no other.

    Raises:
        UnreadableInput: If nothing of it can be read.
    """
    files = _files_of(item)
    counting = CountingSink(sink)
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
