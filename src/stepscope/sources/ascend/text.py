"""Ascend rank directories in the text export: CSV files, trace_view.json and the communication JSON files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.ascend import headers, pmu
from stepscope.sources.ascend.assemble import write_rank, write_tables
from stepscope.sources.ascend.checks import check_text
from stepscope.sources.ascend.communication_files import read_communication, read_matrix
from stepscope.sources.ascend.exported_rank import COMMUNICATION, COMPUTE, ExportedRank, empty, shaped
from stepscope.sources.ascend.framework_files import cpu_executions, take_framework, write_data_preparation
from stepscope.sources.ascend.kernel_tables import joined
from stepscope.sources.ascend.lost_device import activities, report_lost_device, report_lost_kernels
from stepscope.sources.ascend.rank_files import ExportFiles, sort_files
from stepscope.sources.ascend.rank_info import read_rank_info
from stepscope.sources.ascend.recognise import text_part
from stepscope.sources.ascend.steps import step_ranges
from stepscope.sources.ascend.timeline import Kind, Timeline
from stepscope.sources.ascend.trace_view import TraceView, read_trace_view
from stepscope.sources.base import Input
from stepscope.sources.csv_files.layout import FileLayout
from stepscope.sources.csv_files.reading import read_csv, read_csv_parts
from stepscope.tables import ALLOCATIONS, MEMORY_CURVE, OPERATOR_TOTALS, STEP_TOTALS, Table

if TYPE_CHECKING:
    from stepscope.sources.base import Sink

COMMUNICATION_CORES = ("COMMUNICATION", "HCCL")
"""Accelerator core of the rows of kernel_details.csv that are communication."""


def read_text(item: Input, sink: Sink) -> None:
    """Read the text export of one rank."""
    recording, view, files = take_text(item, sink)
    written = write_tables(recording, files, sink)
    write_rank(recording, written, sink)
    check_text(recording, written.computed, view, files, sink)
    write_data_preparation(files, sink)


def take_text(item: Input, sink: Sink) -> tuple[ExportedRank, TraceView, ExportFiles]:
    """What the text export of one rank holds, and the files that hold it.

    Raises:
        UnreadableInput: If nothing of it can be read.
    """
    files = _known_by_content(sort_files(item.path, item.files), item)
    identity, groups = read_rank_info(files, item.source, sink)
    recording = ExportedRank(identity, groups, Timeline(sink.scratch))
    view = TraceView()
    executions = cpu_executions(files, sink)
    if trace := files.texts.get("trace"):
        view = _try_trace(trace, recording, files, sink, with_cpu_operators=executions is None)
    if executions is not None:
        recording.timeline.add("host", executions)
        view.on_cpu_only |= not files.texts
    _take_trace(recording, view)
    _take_kernels(recording, view, files, sink)
    _take_communication(recording, files, sink)
    _take_totals(recording, files, sink)
    _take_memory(recording, files, sink)
    take_framework(recording, files, sink, has_device=not view.on_cpu_only)
    if not _anything(recording):
        raise UnreadableInput(
            item.path,
            "none of its files holds readable data",
            "Export the profile again; the analysis step of the profiler may not have finished",
        )
    if view.process is not None:
        recording.identity.process = view.process
    if view.on_cpu_only:
        recording.identity.device_kind = "cpu"
    # A file alone holds a part only, and an export without its options may be one of a host.
    if item.path.is_dir() and not view.on_cpu_only and "NPU" in (activities(identity) or ""):
        report_lost_kernels(recording, item.path, sink)
        report_lost_device(recording, item.path, sink)
    return recording, view, files


def _known_by_content(files: ExportFiles, item: Input) -> ExportFiles:
    """Give a lone file of unusual name its part."""
    if files.texts or files.cpu.all or len(item.files) != 1:
        return files
    with item.files[0].open("rb") as file:
        part = text_part(file.read(1 << 16))
    return ExportFiles(path=item.path, texts={part: item.files[0]} if part else {})


def _try_trace(
    trace: Path, recording: ExportedRank, files: ExportFiles, sink: Sink, *, with_cpu_operators: bool
) -> TraceView:
    try:
        return read_trace_view(trace, recording.timeline, sink, with_cpu_operators=with_cpu_operators)
    except UnreadableInput as error:
        if len(files.texts) == 1 and not files.cpu.all:
            raise
        sink.issue("error", trace, error.problem, error.remedy)
        return TraceView()


def _take_trace(recording: ExportedRank, view: TraceView) -> None:
    recording.steps = step_ranges(recording.timeline.frames("host", "name", "start_ns", "duration_ns"))
    recording.counters = view.counters


def _take_kernels(recording: ExportedRank, view: TraceView, files: ExportFiles, sink: Sink) -> None:
    """Kernels as kernel_details.csv lists them, with the connection ids of the trace, and what only it has."""
    recording.communication = view.communication
    path = files.texts.get("kernels")
    if path:
        take_details(recording, path, sink)
    if recording.identity.device_kind != "cpu":  # a host's calls are among its ranges already
        recording.timeline.add("communication", recording.communication)


def take_details(recording: ExportedRank, path: Path, sink: Sink) -> None:
    """Take the rows of kernel_details.csv: kernels, and calls with what the trace knows of them."""
    calls: list[pl.DataFrame] = []
    is_empty = False
    for part in read_csv_parts(path, headers.KERNEL_DETAILS, sink, more=pmu.CSV_FIELDS):
        details = pmu.scaled(part)
        is_empty = details.is_empty() and not calls
        core = pl.col("core") if "core" in details.columns else pl.lit(None, pl.String)
        is_call = core.is_in(COMMUNICATION_CORES).fill_null(False)
        counters = [column for column in dict(pmu.COUNTERS.values()) if column in details.columns]
        kept = {**COMPUTE, **dict.fromkeys(counters, pl.Float64())}
        recording.timeline.add("details", shaped(details.filter(~is_call), kept))
        calls.append(shaped(details.filter(is_call), COMMUNICATION))
        device = details["device"].drop_nulls() if "device" in details.columns else pl.Series([], dtype=pl.Int64)
        if recording.identity.device is None and len(device):
            recording.identity.device = int(device[0])
    if is_empty:
        sink.issue("note", path, "holds no kernels", "Nothing to do if nothing ran on the device.")
    elif calls:
        taken = ["correlation", "size_bytes", "element_type"]
        recording.communication = joined(pl.concat(calls), recording.communication, ["start_ns", "name"], taken)


def _take_communication(recording: ExportedRank, files: ExportFiles, sink: Sink) -> None:
    if path := files.texts.get("communication"):
        recording.calls, recording.packets = read_communication(path, sink)
    if path := files.texts.get("matrix"):
        recording.links = read_matrix(path, sink)


def _take_totals(recording: ExportedRank, files: ExportFiles, sink: Sink) -> None:
    recording.step_totals = _table(STEP_TOTALS, files.texts.get("step_totals"), headers.STEP_TRACE_TIME, sink)
    kernel = _frame(files.texts.get("kernel_totals"), headers.OP_STATISTIC, sink)
    api = _frame(files.texts.get("api_totals"), headers.API_STATISTIC, sink)
    stated = [
        shaped(frame, OPERATOR_TOTALS.stored_schema)
        for frame in (kernel.with_columns(level=pl.lit("kernel")) if kernel is not None else None, api)
        if frame is not None
    ]
    if stated:
        whole_rows = pl.concat(stated, how="vertical_relaxed").drop_nulls(["level", "name", "count", "total_ns"])
        recording.totals = OPERATOR_TOTALS.shaped(whole_rows)


def _take_memory(recording: ExportedRank, files: ExportFiles, sink: Sink) -> None:
    recording.allocations = _table(ALLOCATIONS, files.texts.get("allocations"), headers.OPERATOR_MEMORY, sink)
    curves = [
        _table(MEMORY_CURVE, files.texts.get(part), layout, sink)
        for part, layout in (("memory_curve", headers.MEMORY_RECORD), ("module_memory", headers.NPU_MODULE_MEM))
    ]
    recording.memory_curve = pl.concat(curves).sort("time_ns", "component", nulls_last=True)


def _table(table: Table, path: Path | None, layout: FileLayout, sink: Sink) -> pl.DataFrame:
    frame = _frame(path, layout, sink)
    if frame is None:
        return empty(table.stored_schema)
    return table.shaped(shaped(frame, table.stored_schema))


def _frame(path: Path | None, layout: FileLayout, sink: Sink) -> pl.DataFrame | None:
    return read_csv(path, layout, sink) if path else None


def _anything(recording: ExportedRank) -> bool:
    kinds: tuple[Kind, ...] = get_args(Kind)
    return any(recording.timeline.rows(kind) for kind in kinds) or any(
        not getattr(recording, name).is_empty()
        for name in ("calls", "links", "step_totals", "totals", "allocations", "memory_curve", "counters")
    )
