"""Exports of the device's profiler by iteration, as up to CANN 7.0: `device_<d>/timeline/<what>_<d>_<model>_<n>.json`.

An iteration of a model is a file: `msprof` with all of it, or `task_time` (kernels) and `hccl` (communication). Later
ones have one trace of all, `msprof_<time>.json`, in parts if it is large, and the kernels with shapes in `op_summary`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.ascend.assemble import write_tables
from stepscope.sources.ascend.exported_rank import STEPS, ExportedRank, shaped
from stepscope.sources.ascend.groups import Groups
from stepscope.sources.ascend.rank_files import ExportFiles
from stepscope.sources.ascend.rank_info import RankInfo
from stepscope.sources.ascend.text import take_details
from stepscope.sources.ascend.timeline import KINDS, Timeline
from stepscope.sources.ascend.trace_view import read_trace_view
from stepscope.sources.base import Sink
from stepscope.sources.windows import around, span_of
from stepscope.tables import COMMUNICATION_TASKS

NAME = re.compile(r"(msprof|task_time|hccl)_(\d{1,9})_(\d+)_(\d{1,9})(?:_(\d+))?\.json")
"""What, device, model, iteration; very large ones have parts."""
Iteration = tuple[int, int]
"""Model and number."""
_WHOLE: Iteration = (0, 0)
"""Stands for all iterations, in one trace."""
Spans = dict[Iteration, tuple[int, int]]
_NUMBER = r"-op\d+$"
"""Behind the type of an operator in its name."""
_CALL_NUMBER = r"(-op\d+)_\d+$"
"""A call's position among those of its operator."""


def write_iterations(
    files: Iterable[Path], steps: pl.DataFrame | None, path: Path, sink: Sink, details: Iterable[Path] = ()
) -> pl.DataFrame:
    """Write kernels, calls and steps of one device.

    Args:
        files: Those of the device.
        steps: Rows of `steps`, from a step trace; if there is none or it lost some, an iteration is a
            step, from its first to its last work.
        path: The profile, for issues.
        sink: Takes the rows and issues.
        details: Lists of kernels that state more than the traces.

    Returns:
        The range of each step: `step`, `start_ns`, `end_ns`.

    Raises:
        UnreadableInput: If no file can be read.
    """
    recording = ExportedRank(RankInfo(format="ascend_iterations"), Groups(), Timeline(sink.scratch))
    calls: list[pl.DataFrame] = []
    spans: Spans = {}
    for iteration, named in _by_iteration(files).items():
        found = [_take(file, recording, calls, sink) for file in named]
        if (span := around(found)) is not None:
            spans[iteration] = span
    if not spans:
        raise UnreadableInput(path, "none of its iterations can be read", "Export the profile again")
    recording.communication = pl.concat(calls)
    for listed in details:
        take_details(recording, listed, sink)
    recording.timeline.add("communication", recording.communication)
    stated = steps if steps is not None and steps.height >= len(spans) else None
    ranges = recording.steps = shaped(stated, STEPS) if stated is not None else _steps(spans)
    write_tables(recording, ExportFiles(path=path), sink, known_steps=lambda rows: rows if stated is None else stated)
    return ranges


def _by_iteration(files: Iterable[Path]) -> Mapping[Iteration, list[Path]]:
    """Files of each iteration, in the order of models and numbers; only `msprof` if it exists."""
    found: dict[Iteration, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for file in files:
        if match := NAME.fullmatch(file.name):
            found[int(match[3]), int(match[4])][match[1]].append(file)
        else:
            found[_WHOLE]["msprof"].append(file)
    return {
        iteration: sorted(kinds.get("msprof") or [file for named in kinds.values() for file in named])
        for iteration, kinds in sorted(found.items())
    }


def _take(file: Path, recording: ExportedRank, calls: list[pl.DataFrame], sink: Sink) -> tuple[int, int] | None:
    """Take the events of one file; first start and last end of the device's work in it."""
    own = Timeline(sink.scratch)
    match = NAME.fullmatch(file.name)
    device = pl.lit(int(match[2]) if match else None, pl.Int32)  # numbers of processes do not have it yet
    try:
        view = read_trace_view(file, own, sink)
    except UnreadableInput as error:
        sink.issue("error", file, error.problem, error.remedy)
        return None
    spans = [span_of(view.communication)] if view.communication.height else []
    calls.append(_with_type(_with_group(view.communication)).with_columns(device=device))
    for parts in view.parts.rows(recording.groups) if view.parts else ():
        sink.write(COMMUNICATION_TASKS, parts.with_columns(device=device))
    for kind in KINDS:
        for frame in own.taken(kind):
            if kind == "host":
                recording.timeline.add(kind, frame)
                continue
            rows = frame.with_columns(device=device)
            spans.append(span_of(rows.filter(pl.col("category") != "device_annotation") if kind == "tasks" else rows))
            recording.timeline.add(kind, _with_type(rows) if kind == "compute" else rows)
    return around(spans)


def _with_type(rows: pl.DataFrame) -> pl.DataFrame:
    """Kernels or calls with the type that their name ends in: it is the operator's place in the model."""
    word = pl.col("name").str.split("/").list.last().str.replace(_CALL_NUMBER, "$1").str.replace(_NUMBER, "")
    return rows.with_columns(type=pl.coalesce("type", word))


def _with_group(calls: pl.DataFrame) -> pl.DataFrame:
    """Calls with their operator as the group: who is in a call is not recorded, and all who are run that operator."""
    operator = pl.when(pl.col("name").str.contains(_CALL_NUMBER)).then(pl.col("name").str.replace(_CALL_NUMBER, "$1"))
    return calls.with_columns(group=pl.coalesce("group", operator))


def _steps(spans: Spans) -> pl.DataFrame:
    """Steps by iteration; by their start if several models count separately."""
    in_order = sorted(spans.items(), key=lambda row: row[1])
    numbers = [number for (_, number), _ in in_order]
    if len(set(numbers)) < len(numbers):
        numbers = list(range(1, len(numbers) + 1))
    rows = [(number, *span) for number, (_, span) in zip(numbers, in_order, strict=True)]
    return pl.DataFrame(rows, schema=STEPS, orient="row")
