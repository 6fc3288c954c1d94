"""Exports of the device's profiler by iteration, as up to CANN 7.0: `device_<d>/timeline/<what>_<d>_<model>_<n>.json`.

An iteration of a model is a file: `msprof` with all of it, or `task_time` (kernels) and `hccl` (communication).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.ascend.assemble import write_tables
from stepscope.sources.ascend.groups import Groups
from stepscope.sources.ascend.rank_files import RankFiles
from stepscope.sources.ascend.recording import STEPS, Recording, shaped
from stepscope.sources.ascend.side_files import Identity
from stepscope.sources.ascend.timeline import Kind, Timeline
from stepscope.sources.ascend.trace_view import read_trace_view
from stepscope.sources.windows import around, span_of

if TYPE_CHECKING:
    from stepscope.sources.base import Sink

NAME = re.compile(r"(msprof|task_time|hccl)_(\d+)_(\d+)_(\d+)(?:_(\d+))?\.json")
"""What, device, model, iteration; very large ones have parts."""
_DEVICE_KINDS: tuple[Kind, ...] = ("compute", "communication", "tasks")

Iteration = tuple[int, int]
"""Model and number."""
Spans = dict[Iteration, tuple[int, int]]


def write_iterations(files: Iterable[Path], steps: pl.DataFrame | None, path: Path, sink: Sink) -> None:
    """Write kernels, calls and steps of one device.

    Args:
        files: Those of the device.
        steps: Its steps (`step`, `start_ns`, `end_ns`), where a step trace tells them; without one, or one that lost
            some, an iteration is a step, from its first to its last work.
        path: The profile, for issues.
        sink: Takes the rows; told about damage.

    Raises:
        UnreadableInput: If no file can be read.
    """
    recording = Recording(Identity(format="ascend_iterations"), Groups(), Timeline(sink.scratch))
    calls: list[pl.DataFrame] = []
    spans: Spans = {}
    for iteration, named in _by_iteration(files).items():
        found = [_take(file, recording, calls, sink) for file in named]
        if (span := around(found)) is not None:
            spans[iteration] = span
    if not spans:
        raise UnreadableInput(path, "none of its iterations can be read", "Export the profile again")
    if calls:
        recording.communication = pl.concat(calls)
        recording.timeline.add("communication", recording.communication)
    whole = steps is not None and steps.height >= len(spans)
    recording.steps = shaped(steps, STEPS) if steps is not None and whole else _steps(spans)
    write_tables(recording, RankFiles(path=path), sink)


def _by_iteration(files: Iterable[Path]) -> Mapping[Iteration, list[Path]]:
    """Files of each iteration, in the order of models and numbers; `msprof` alone where it is there."""
    found: dict[Iteration, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for file in files:
        if match := NAME.fullmatch(file.name):
            found[int(match[3]), int(match[4])][match[1]].append(file)
    return {
        iteration: sorted(kinds.get("msprof") or [file for named in kinds.values() for file in named])
        for iteration, kinds in sorted(found.items())
    }


def _take(file: Path, recording: Recording, calls: list[pl.DataFrame], sink: Sink) -> tuple[int, int] | None:
    """Take the events of one file; first start and last end of the device's work in it."""
    own = Timeline(sink.scratch)
    try:
        view = read_trace_view(file, own, sink)
    except UnreadableInput as error:
        sink.issue("error", file, error.problem, error.remedy)
        return None
    spans = [span_of(view.communication)] if view.communication.height else []
    calls.append(view.communication)
    kinds: tuple[Kind, ...] = get_args(Kind)
    for kind in kinds:
        for frame in own.taken(kind):
            if kind in _DEVICE_KINDS:
                spans.append(span_of(frame))
            recording.timeline.add(kind, frame)
    return around(spans)


def _steps(spans: Spans) -> pl.DataFrame:
    """Steps by iteration; by their start where several models count for themselves."""
    rows = sorted(((span, iteration) for iteration, span in spans.items()), key=lambda row: row[0])
    numbers = [iteration[1] for _, iteration in rows]
    if len(set(numbers)) < len(numbers):
        numbers = list(range(1, len(rows) + 1))
    starts, ends = [span[0] for span, _ in rows], [span[1] for span, _ in rows]
    return pl.DataFrame({"step": numbers, "start_ns": starts, "end_ns": ends}, schema=STEPS)
