"""`step_trace_raw`: the steps of a device, and where forward begins and backward ends in each, in ticks of 10 ns.

Its lengths of phases are checked and not kept, and neither is its average (up to 1.x over all steps but the first,
later over all), unless it is of more steps than the file has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.classic.average_rows import find_average, is_mean_row, step_numbers, without
from stepscope.sources.classic.figures import write_averages
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.step_trace_reduces import Reduces, calls_of, find_reduces
from stepscope.sources.csv_files.heading import header_of
from stepscope.sources.csv_files.layout import Field, FileLayout, order
from stepscope.sources.csv_files.reading import read_csv
from stepscope.sources.plausible import Times, sort_out
from stepscope.sources.sinks import SilentSink
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
_ROUNDING_NS = 20
_ENDS = ("start_ns", "end_ns")
_PHASES = {
    "total": ("start_ns", "end_ns"),
    "iteration_interval": ("start_ns", "forward_start_ns"),
    "fp_and_bp": ("forward_start_ns", "backward_end_ns"),
    "fp": ("forward_start_ns", "end_ns"),
    "tail": ("backward_end_ns", "end_ns"),
}
"""Recorded length to its first and last point."""
_AVERAGES = {
    "total": "step_ns",
    "iteration_interval": "interval_ns",
    "fp_and_bp": "forward_backward_ns",
    "fp": "forward_ns",
    "tail": "tail_ns",
}
"""Recorded length to what its average is called."""
_MARK = "-"
"""What the average usually has for a number."""
_REMEDY = "The file is truncated or damaged; copy it again, or run the profiler's analysis again."


@dataclass(frozen=True)
class StepTrace:
    """The steps of a rank, in order of start, and their communication: rows of `steps` and `collectives`."""

    steps: pl.DataFrame
    calls: pl.DataFrame


def read_step_trace(path: Path, rank: int, sink: Sink) -> StepTrace | None:
    """Read a step trace of any generation, of training or inference; None if it has no steps that can be read.

    Figures of the file that differ from what its points give become issues, too.
    """
    reduces = find_reduces(header_of(path, _LAYOUT))
    layout = replace(_LAYOUT, fields=(*_LAYOUT.fields, *reduces.points), ignored=reduces.lengths)
    rows = read_csv(path, layout, sink)
    if rows is None:
        return None
    if missing := [name for name in _ENDS if rows.height and not rows[name].count()]:
        named = ", ".join(name.replace("_ns", "_point") for name in missing)
        sink.issue("error", path, f"has no readable {named}", _REMEDY, place="line 1")
        return None
    at = find_average(rows, _ENDS, _ROUNDING_NS)
    average = None if at is None else rows.slice(at, 1)
    steps = _known_steps(path, rows if at is None else without(rows, at), sink)
    if steps.is_empty():
        sink.issue("error", path, "holds no steps", _REMEDY)
        return None
    lengths = _lengths(steps)
    for name, length in lengths.items():
        if differing := steps.filter((pl.col(name) - length).abs() > _ROUNDING_NS).height:
            problem = f"{name} of {differing} of {steps.height} steps does not match their points, which are used"
            sink.issue("note", path, problem, "Nothing to do.")
    if average is not None:
        _check_average(path, steps, average, lengths, sink)
    else:
        problem = "does not end with the average row, so steps may be missing"
        sink.issue("warning", path, problem, "Copy the file again if it is truncated.")
    return StepTrace(_steps(path, steps, sink), _calls(path, steps, reduces, rank, sink))


def peek_steps(files: RankFiles) -> pl.DataFrame:
    """The steps of a rank's step trace, empty if it has none; `timeline` writes them and reports damage."""
    path = files.one("step_trace")
    trace = None if path is None else read_step_trace(path, files.rank, SilentSink())
    return STEPS.frame() if trace is None else trace.steps


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


def _lengths(steps: pl.DataFrame) -> dict[str, pl.Expr]:
    """Recorded length to the length between its points, if the file has both."""
    return {name: pl.col(last) - pl.col(first) for name, (first, last) in _PHASES.items() if steps[name].count()}


def _check_average(
    path: Path, steps: pl.DataFrame, average: pl.DataFrame, lengths: dict[str, pl.Expr], sink: Sink
) -> None:
    """Report an average that is neither over all steps nor over all but the first."""
    if steps.height < 2 or not lengths:
        return
    stated = average.select(list(lengths)).row(0)
    means = [rows.select(**lengths).mean().row(0) for rows in (steps, steps.slice(1))]
    if any(stated) and not any(is_mean_row(stated, mean, _ROUNDING_NS) for mean in means):
        problem = "its average row does not match the steps in the file, with or without the first; it is kept apart"
        sink.issue("note", path, problem, "Nothing to do unless steps are missing from the file.")
        write_averages({_AVERAGES[name]: value for name, value in zip(lengths, stated, strict=True)}, sink)


def _steps(path: Path, steps: pl.DataFrame, sink: Sink) -> pl.DataFrame:
    """Rows of `steps`; a point outside its step is unknown."""
    points = {"forward_start_ns": "fp_point", "backward_end_ns": "bp_point"}
    earliest = ("start_ns", pl.max_horizontal("start_ns", "forward_start_ns"))
    known = {}
    for (name, header), begin in zip(points.items(), earliest, strict=True):
        inside = pl.col(name).is_between(begin, "end_ns")
        known[name] = pl.when(inside).then(name)
        if outside := steps.filter(~inside & (pl.col(name) != 0)).height:  # 0 means that there is none
            problem = f"{outside} of {steps.height} steps have a {header} outside the step; it is treated as unknown"
            sink.issue("warning", path, problem, "Check that the file is complete and belongs to one profile.")
    return stated_steps(steps.select("step", "start_ns", "end_ns", "graph", **known))


def stated_steps(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of `steps` whose windows are their ranges, as a device states them."""
    return STEPS.shaped(rows.with_columns(window_start_ns="start_ns", window_end_ns="end_ns", window=pl.lit("stated")))


def _calls(path: Path, steps: pl.DataFrame, reduces: Reduces, rank: int, sink: Sink) -> pl.DataFrame:
    """Rows of `collectives`; calls that cannot be of their step's recording are left out."""
    calls = calls_of(steps, reduces, rank)
    times = Times()
    times.add(steps["start_ns"])
    sound = sort_out(calls, times.middle_ns, start=pl.col("start_ns"), end=pl.col("start_ns") + pl.col("duration_ns"))
    if sound.lost:
        sink.issue("error", path, f"communication: {sound.problem()}", _REMEDY, lost=sound.lost)
    return COLLECTIVES.shaped(sound.rows.with_row_index("collective"))
