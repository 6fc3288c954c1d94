"""Reading the files of one rank of a classic profile into tables: its parts, one function a subject."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from stepscope.errors import UnreadableInput
from stepscope.recording_format.export_list import list_name
from stepscope.sources.base import Input, Sink
from stepscope.sources.classic import legacy
from stepscope.sources.classic.calls import write_calls
from stepscope.sources.classic.cpu_operators import write_cpu_operators
from stepscope.sources.classic.dynamic_shapes import write_dynamic_shapes
from stepscope.sources.classic.figures import (
    write_device_peak,
    write_flops_summary,
    write_recommendation,
    write_step_points,
)
from stepscope.sources.classic.files import LABEL, RankFiles, kind_of, rank_files, recorded_steps
from stepscope.sources.classic.flops import write_flop_scopes
from stepscope.sources.classic.gpu_operators import write_gpu_operators
from stepscope.sources.classic.host_info import write_host_info
from stepscope.sources.classic.iterations import write_by_iteration
from stepscope.sources.classic.memory import write_memory
from stepscope.sources.classic.operators import write_ai_cpu, write_device_operators, write_pynative
from stepscope.sources.classic.ranks import write_ranks
from stepscope.sources.classic.raw_beside import write_beside
from stepscope.sources.classic.strategy import write_strategy
from stepscope.sources.classic.timeline import write_device
from stepscope.sources.minddata.files import Clock, MinddataFiles
from stepscope.sources.minddata.write import write_minddata
from stepscope.sources.rank_tables import is_named
from stepscope.sources.sinks import CountingSink, RecordedStepsSink

Part = Callable[[RankFiles, Sink], None]
"""Reads some kinds of files of a rank, if it has them, and writes tables.

Reports damage by `sink.issue` with the file's name and reads on; what it cannot read at all raises `UnreadableInput`,
which costs that part alone."""


def of_kind(kind: str, read: Callable[[Path, Sink], None]) -> Part:
    """The part that reads the file of a kind, if there is one."""

    def part(files: RankFiles, sink: Sink) -> None:
        if (path := files.one(kind)) is not None:
            read(path, sink)

    return part


def _write_data_preparation(files: RankFiles, sink: Sink) -> None:
    """Write dataset operators, queues, batches and CPU use.

    Their times keep the host's monotonic clock: nothing in a classic profile relates it to the epoch.
    """
    write_minddata(MinddataFiles.among(files.every), Clock(), sink)


def _write_strategy(files: RankFiles, sink: Sink) -> None:
    """Write the graph with its parallel strategy."""
    if (path := files.one("strategy")) is not None:
        write_strategy(path, files.rank, sink)


PARTS: Sequence[Part] = (
    write_ranks,
    write_device,
    of_kind("step_points", write_step_points),
    write_device_operators,
    of_kind("ai_cpu", write_ai_cpu),
    write_pynative,
    write_gpu_operators,
    of_kind("flops_summary", write_flops_summary),
    of_kind("flops_scope", write_flop_scopes),
    _write_data_preparation,
    of_kind("dynamic_shapes", write_dynamic_shapes),
    write_host_info,
    write_memory,
    of_kind("recommendation", write_recommendation),
    _write_strategy,
    write_calls,
    write_cpu_operators,
    write_by_iteration,
    write_beside,
    of_kind("device_info", write_device_peak),
)
"""All parts. The row of `ranks` comes first."""


def read_rank(item: Input, sink: Sink) -> None:
    """Read the files of one rank, each part by itself, so that a damaged one costs no other.

    Raises:
        UnreadableInput: If nothing of it can be read.
    """
    files = _files_of(item)
    counting = CountingSink(sink)
    listed = item.path / list_name(files.rank)  # of files that were exported from a recording
    steps = recorded_steps(listed) if listed in item.files and files.one("step_trace") is not None else ()
    target = RecordedStepsSink(counting, steps) if steps else counting
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


def _files_of(item: Input) -> RankFiles:
    """The files of an input by kind; those of a cluster's folder have the number of the device, not of the rank."""
    rank = int(item.label.removeprefix(LABEL))
    root = item.path if item.path.is_dir() else item.path.parent
    in_cluster = (file.parent for file in item.files if item.path in file.parents and legacy.cluster_of(file.parent))
    folder = next(in_cluster, None) if root.name == legacy.FOLDER else None
    if folder is None:
        own = [file for file in item.files if not is_named(file)]
        files = rank_files(item.path, rank, [(file.relative_to(root).as_posix(), file) for file in own])
        table = next((file for file in item.files if is_named(file)), None)
        return replace(files, table=table)
    named = [(file.relative_to(folder).as_posix(), file) for file in item.files if folder in file.parents]
    numbers = [found[1] for name, _ in named if (found := kind_of(name)) and found[1] is not None]
    cluster = legacy.cluster_of(folder)
    seat = cluster.seat(folder, numbers[0]) if cluster is not None and numbers else None
    return rank_files(folder, rank, named, seat)
