"""Files next to an export of MindSpore: `FRAMEWORK`, and the files of data preparation.

`FRAMEWORK` has the operators that ran on the CPU; `dataset.csv`, `data_preprocess.csv` and the files of dataset
profiling are in the output folder, or raw in `FRAMEWORK`.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.ascend.exported_rank import HOST, ExportedRank, shaped
from stepscope.sources.ascend.rank_files import ExportFiles, began_ns
from stepscope.sources.ascend.trace_layout import CPU_OPERATORS
from stepscope.sources.base import Sink
from stepscope.sources.csv_files.layout import Field, FileLayout
from stepscope.sources.csv_files.reading import read_csv
from stepscope.sources.minddata.files import Clock
from stepscope.sources.minddata.pipeline import read_stages
from stepscope.sources.minddata.write import write_minddata
from stepscope.sources.mindspore_cpu.executions import read_executions
from stepscope.sources.mindspore_cpu.files import Unit
from stepscope.sources.mindspore_cpu.memory import read_memory
from stepscope.sources.mindspore_cpu.totals import read_totals
from stepscope.sources.plausible import FIRST_EPOCH_NS, WEEK_NS
from stepscope.tables import MEMORY_CURVE, OPERATOR_TOTALS

DATA_PREPROCESS = FileLayout(
    fields=(
        Field("time_ns", "time", ("timestamp",)),
        Field("name", "text", ("node",), required=True),
        Field("total_ns", "duration", ("total_time",), required=True),
        Field("wait_ns", "duration", ("dispatch_time",)),
        Field("stream", "small", ("stream_id",)),
    ),
    ignored=frozenset({"device_id", "compute_time", "memcpy_time", "task_time", "task_id"}),
    report_empty=True,
)
"""AI CPU operators of data preprocessing, a row an execution."""
_NUMBER = r"-op\d+$|_\d+$"


def cpu_executions(files: ExportFiles, sink: Sink) -> pl.DataFrame | None:
    """The operators on the CPU as rows of `HOST`, with types and shapes; None to use those of the trace.

    The trace is used if there are no files, if some cannot be read, or if their clock differs from that of the trace.
    """
    found = files.cpu
    if found.times is None:
        return None
    rows = read_executions(found.times, found.launches, sink)
    if rows.is_empty() or rows["start_ns"][0] < FIRST_EPOCH_NS:
        return None
    return shaped(rows.with_columns(category=pl.lit("operator"), process=pl.lit(CPU_OPERATORS)), HOST)


def take_framework(recording: ExportedRank, files: ExportFiles, sink: Sink, *, has_device: bool) -> None:
    """Take totals of operators on the CPU, of data preprocessing and of dataset stages, and the host's memory.

    `has_device`: whether the rank also ran operators on a device.
    """
    unit: Unit = "HOST_CPU" if has_device else "CPU"
    totals = [recording.totals, read_totals(files.cpu, unit, sink)]
    if path := files.texts.get("dataset"):
        totals.append(read_stages(path, sink))
    if path := files.texts.get("data_preprocess"):
        executions = read_csv(path, DATA_PREPROCESS, sink)
        totals += [] if executions is None else [ai_cpu_totals(path, executions, sink)]
    recording.totals = pl.concat(totals, how="vertical_relaxed")
    if files.cpu.memory is not None:
        curve = MEMORY_CURVE.shaped(read_memory(files.cpu.memory, sink))
        both = pl.concat([recording.memory_curve, _own_part(curve, files.path)])
        recording.memory_curve = both.sort("time_ns", "component", nulls_last=True)


def _own_part(curve: pl.DataFrame, path: Path) -> pl.DataFrame:
    """A window's part of its curve, which repeats those of all previous windows."""
    known = curve.filter(pl.col("time_ns") >= FIRST_EPOCH_NS)
    own = known.filter(pl.col("time_ns") >= (began_ns(path) or 0))
    return own if own.height else known  # the name uses another clock


def write_data_preparation(files: ExportFiles, sink: Sink) -> None:
    """Write the files of dataset profiling; their times are those of the host's monotonic clock."""
    if files.minddata.all:
        write_minddata(files.minddata, Clock(), sink)


def ai_cpu_totals(path: Path, executions: pl.DataFrame, sink: Sink) -> pl.DataFrame:
    """Rows of `operator_totals` of kernels on the AI CPU, of executions with `name`, `total_ns` and `wait_ns`."""
    possible = pl.all_horizontal(pl.col("total_ns", "wait_ns").is_between(0, WEEK_NS).fill_null(value=True))
    rows = executions.filter(possible)
    if lost := executions.height - rows.height:
        sink.issue("error", path, f"{lost} rows have impossible times and are left out", "Copy it again", lost=lost)
    grouped = rows.group_by("name", maintain_order=True).agg(
        pl.sum("total_ns"),
        pl.when(pl.col("wait_ns").count() > 0).then(pl.sum("wait_ns")),
        count=pl.len(),
        min_ns=pl.min("total_ns"),
        max_ns=pl.max("total_ns"),
    )
    word = pl.col("name").str.replace(_NUMBER, "")
    named = grouped.with_columns(type=word, unit=pl.lit("AI_CPU"), level=pl.lit("operator"), core=pl.lit("AI_CPU"))
    return OPERATOR_TOTALS.shaped(named)
