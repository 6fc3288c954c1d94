"""`step_trace_raw`: the steps of a device, and where forward begins and backward ends in each, in ticks of 10 ns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.classic.average_rows import find_average, step_numbers
from stepscope.sources.classic.step_trace_average import ROUNDING_NS, check_average, check_phases
from stepscope.sources.classic.step_trace_reduces import Reduces, calls_of, find_reduces
from stepscope.sources.csv_files.heading import header_of
from stepscope.sources.csv_files.layout import Field, FileLayout, order
from stepscope.sources.csv_files.reading import read_csv
from stepscope.sources.plausible import Times, sort_out
from stepscope.sources.side_files import report_unreadable
from stepscope.tables import COLLECTIVES, STEPS

_LAYOUT = FileLayout(
    fields=(
        Field("step", "text", ("step_num",), required=True),
        Field("start_ns", "ticks", ("start_point",)),
        Field("end_ns", "ticks", ("end_point",)),
        Field("forward_start_ns", "ticks", ("fp_point",)),
        Field("backward_end_ns", "ticks", ("bp_point",)),
        Field("graph", "int", ("model_id", "graph_id")),
        Field("total", "ticks", ("total",)),
        Field("iteration_interval", "ticks", ("iteration_interval",)),
        Field("fp_and_bp", "ticks", ("fp_and_bp",)),
        Field("fp", "ticks", ("fp",)),
        Field("tail", "ticks", ("tail",)),
    ),
    report_cells=True,
    orders=(
        order("step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail"),
        order("step_num,start_point,end_point,total,fp_point,iteration_interval,fp"),
    ),
    repeats=3,
)
_POINTS = ("start_ns", "end_ns")
_MARK = "-"
"""What the average usually has for a number."""
_REMEDY = "The file is truncated or damaged; copy it again, or run the profiler's analysis again."


@dataclass(frozen=True)
class StepTrace:
    """The steps of a rank and their communication.

    Args:
        steps: Rows of `steps`, in order of start.
        calls: Rows of `collectives`.
    """

    steps: pl.DataFrame
    calls: pl.DataFrame


def read_step_trace(path: Path, rank: int, sink: Sink) -> StepTrace | None:
    """Read a step trace of any generation, of training or inference; None if it has no steps that can be read.

    Args:
        path: The file.
        rank: Whose it is.
        sink: Told about damage, and about figures of the file that differ from what its points give.
    """
    try:
        headers = header_of(path, _LAYOUT)
    except OSError as error:
        report_unreadable(error, path, sink)
        return None
    reduces = find_reduces(headers)
    layout = replace(_LAYOUT, ignored=reduces.lengths)
    rows = read_csv(path, layout, sink, more=dict(reduces.points))
    if rows is None:
        return None
    if missing := [name for name in _POINTS if name not in rows.columns]:
        named = ", ".join(name.replace("_ns", "_point") for name in missing)
        sink.issue("error", path, f"has no column {named}", _REMEDY, place="line 1")
        return None
    at = find_average(rows, _POINTS, ROUNDING_NS)
    average = None if at is None else rows.slice(at, 1)
    steps = _known_steps(path, rows if at is None else pl.concat([rows.head(at), rows.slice(at + 1)]), sink)
    if steps.is_empty():
        sink.issue("error", path, "holds no steps", _REMEDY)
        return None
    check_phases(path, steps, sink)
    if average is not None:
        check_average(path, steps, average, sink)
    else:
        problem = "does not end with the average row, so steps may be missing"
        sink.issue("warning", path, problem, "Copy the file again if it is truncated.")
    return StepTrace(_steps(path, steps, sink), _calls(path, steps, reduces, rank, sink))


def _known_steps(path: Path, rows: pl.DataFrame, sink: Sink) -> pl.DataFrame:
    """Rows that are steps, numbered, in order of start.

    A row without a number is numbered by its position: if a profile has one step, later generations mark it
    as if it were the average.
    """
    place = pl.int_range(1, pl.len() + 1, dtype=pl.Int32)
    rows = rows.with_columns(step=pl.when(pl.col("step") == _MARK).then(place).otherwise(step_numbers(pl.col("step"))))
    numbered = rows.drop_nulls("step")
    if lost := rows.height - numbered.height:
        sink.issue("error", path, f"{lost} of {rows.height} rows have no readable step_num", _REMEDY, lost=lost)
    times = Times()
    times.add(numbered["start_ns"])
    start = pl.when(pl.col("start_ns") >= 0).then("start_ns")
    sound = sort_out(numbered, times.middle_ns, start=start, end=pl.col("end_ns"))
    if sound.lost:
        sink.issue("error", path, sound.problem(), _REMEDY, lost=sound.lost)
    steps = sound.rows.sort("start_ns", maintain_order=True)
    if steps["step"].is_duplicated().any():
        sink.issue("note", path, "repeats step numbers; steps are renumbered in order of their start", "Nothing to do.")
        steps = steps.with_columns(step=place)
    return steps


def _steps(path: Path, steps: pl.DataFrame, sink: Sink) -> pl.DataFrame:
    """Rows of `steps`; a point outside its step is unknown."""
    first, last = (
        pl.col(name) if name in steps.columns else pl.lit(None, pl.Int64)
        for name in ("forward_start_ns", "backward_end_ns")
    )
    inside = {
        "forward_start_ns": first.is_between(pl.col("start_ns"), pl.col("end_ns")),
        "backward_end_ns": last.is_between(pl.max_horizontal("start_ns", first), pl.col("end_ns")),
    }
    marked = steps.with_columns(forward_start_ns=first, backward_end_ns=last)
    for name, test in inside.items():
        outside = marked.filter(~test & (pl.col(name) != 0)).height  # 0 means that there is none
        if outside:
            point = "fp_point" if name == "forward_start_ns" else "bp_point"
            problem = f"{outside} of {steps.height} steps have a {point} outside the step; it is treated as unknown"
            sink.issue("warning", path, problem, "Check that the file is complete and belongs to one profile.")
    columns = [name for name in marked.columns if name in STEPS.stored_schema]
    return STEPS.shaped(
        marked.select(
            *columns, window_start_ns="start_ns", window_end_ns="end_ns", window=pl.lit("stated")
        ).with_columns(**{name: pl.when(test).then(pl.col(name)) for name, test in inside.items()})
    )


def _calls(path: Path, steps: pl.DataFrame, reduces: Reduces, rank: int, sink: Sink) -> pl.DataFrame:
    """Rows of `collectives`; calls that cannot be of their step's recording are left out."""
    calls = calls_of(steps, reduces, rank)
    times = Times()
    times.add(steps["start_ns"])
    sound = sort_out(calls, times.middle_ns, start=pl.col("start_ns"), end=pl.col("start_ns") + pl.col("duration_ns"))
    if sound.lost:
        sink.issue("error", path, f"communication: {sound.problem()}", _REMEDY, lost=sound.lost)
    return COLLECTIVES.shaped(sound.rows.with_row_index("collective"))
