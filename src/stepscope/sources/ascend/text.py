"""Ascend rank directories in the text export: CSV files, trace_view.json and the communication JSON files."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.ascend import headers
from stepscope.sources.ascend.assemble import write_tables
from stepscope.sources.ascend.checks import check_text, report_lost_device, report_lost_kernels
from stepscope.sources.ascend.communication_files import read_communication, read_matrix
from stepscope.sources.ascend.exported_rank import COMMUNICATION, COMPUTE, ExportedRank, shaped
from stepscope.sources.ascend.framework_files import cpu_executions, take_framework, write_data_preparation
from stepscope.sources.ascend.kernel_tables import joined
from stepscope.sources.ascend.pmu import counters_of, scaled
from stepscope.sources.ascend.rank_files import ExportFiles, sort_files
from stepscope.sources.ascend.rank_info import read_rank_info, take_rank_table
from stepscope.sources.ascend.recognise import text_part
from stepscope.sources.ascend.steps import step_ranges
from stepscope.sources.ascend.timeline import Timeline
from stepscope.sources.ascend.trace_view import TraceView, read_trace_view
from stepscope.sources.base import Input, Sink
from stepscope.sources.csv_files.layout import FileLayout
from stepscope.sources.csv_files.reading import read_csv, read_csv_parts
from stepscope.tables import ALLOCATIONS, COMMUNICATION_TASKS, MEMORY_CURVE, OPERATOR_TOTALS, RANKS, STEP_TOTALS, Table
from stepscope.tables.base import nulls

COMMUNICATION_CORES = ("COMMUNICATION", "HCCL")
"""Accelerator core of the rows of kernel_details.csv that are communication."""


def read_text(item: Input, sink: Sink) -> None:
    """Read the text export of one rank."""
    recording, view, files = take_text(item, sink)
    computed, span = write_tables(recording, files, sink)
    take_rank_table(recording.identity, item, sink)
    sink.write(RANKS, recording.identity.frame(span))
    check_text(recording, computed, view, files, sink)
    write_data_preparation(files, sink)


def take_text(item: Input, sink: Sink) -> tuple[ExportedRank, TraceView, ExportFiles]:
    """What the text export of one rank holds, and the files that hold it.

    Raises:
        UnreadableInput: If nothing of it can be read.
    """
    files = _known_by_content(sort_files(item.path, item.files), item)
    identity, groups = read_rank_info(files, item.source, sink)
    recording = ExportedRank(identity, groups, Timeline(sink.scratch))
    view = _take_events(recording, files, sink)
    if path := files.texts.get("communication"):
        recording.calls, recording.packets = read_communication(path, sink)
    if path := files.texts.get("matrix"):
        recording.links = read_matrix(path, sink)
    _take_tables(recording, files, sink)
    take_framework(recording, files, sink, has_device=not view.on_cpu_only)
    if not _anything(recording):
        remedy = "Export the profile again; the analysis step of the profiler may not have finished"
        raise UnreadableInput(item.path, "none of its files holds readable data", remedy)
    if view.process is not None:
        recording.identity.process = view.process
    if view.on_cpu_only:
        recording.identity.device_kind = "cpu"
    # A file alone holds a part only, and an export without its options may be one of a host.
    if item.path.is_dir() and not view.on_cpu_only and "NPU" in identity.activities:
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


def _take_events(recording: ExportedRank, files: ExportFiles, sink: Sink) -> TraceView:
    """Take host ranges, device work and steps; kernel_details.csv counts for what it lists."""
    view = TraceView()
    executions = cpu_executions(files, sink)
    if trace := files.texts.get("trace"):
        try:
            view = read_trace_view(trace, recording.timeline, sink, with_cpu_operators=executions is None)
        except UnreadableInput as error:
            if len(files.texts) == 1 and not files.cpu.all:
                raise
            sink.issue("error", trace, error.problem, error.remedy)
    if executions is not None:
        recording.timeline.add("host", executions)
        view.on_cpu_only |= not files.texts
    recording.steps = step_ranges(recording.timeline.frames("host", ["name", "start_ns", "duration_ns"]))
    recording.counters = view.counters
    for rows in view.parts.rows(recording.groups) if view.parts else ():
        sink.write(COMMUNICATION_TASKS, rows)
    recording.communication = view.communication
    if path := files.texts.get("kernels"):
        take_details(recording, path, sink)
    if recording.identity.device_kind != "cpu":  # a host's calls are among its ranges already
        recording.timeline.add("communication", recording.communication)
    return view


def take_details(recording: ExportedRank, path: Path, sink: Sink) -> None:
    """Take the rows of kernel_details.csv: kernels, and calls with what the trace knows of them."""
    calls: list[pl.DataFrame] = []
    is_empty = False
    for part in read_csv_parts(path, headers.KERNEL_DETAILS, sink):
        details = scaled(part)
        is_empty = details.is_empty() and not calls
        core = details["core"] if "core" in details.columns else nulls("core", pl.String, details.height)
        is_call = core.is_in(COMMUNICATION_CORES).fill_null(False)
        recording.timeline.add("details", shaped(details.filter(~is_call), {**COMPUTE, **counters_of(details)}))
        known = [name for name in details.columns if name in COMMUNICATION]
        calls.append(shaped(details.select(known).filter(is_call), COMMUNICATION))
        device = details["device"].drop_nulls() if "device" in details.columns else pl.Series([], dtype=pl.Int64)
        if recording.identity.device is None and len(device):
            recording.identity.device = int(device[0])
    if is_empty:
        sink.issue("note", path, "holds no kernels", "Nothing to do if nothing ran on the device.")
    elif calls:
        taken = ["correlation", "size_bytes", "element_type", "algorithm", "relayed", "retried"]
        recording.communication = joined(pl.concat(calls), recording.communication, ["start_ns", "name"], taken)


def _take_tables(recording: ExportedRank, files: ExportFiles, sink: Sink) -> None:
    """Take totals, allocations and memory, which the files list as the tables do."""

    def rows(table: Table, part: str, layout: FileLayout) -> pl.DataFrame:
        frame = read_csv(files.texts.get(part), layout, sink)
        return table.frame() if frame is None else shaped(frame, table.stored_schema)

    recording.step_totals = rows(STEP_TOTALS, "step_totals", headers.STEP_TRACE_TIME)
    kernels = rows(OPERATOR_TOTALS, "kernel_totals", headers.OP_STATISTIC).with_columns(level=pl.lit("kernel"))
    calls = rows(OPERATOR_TOTALS, "api_totals", headers.API_STATISTIC)
    recording.totals = pl.concat([kernels, calls]).drop_nulls(["level", "name", "count", "total_ns"])
    recording.allocations = rows(ALLOCATIONS, "allocations", headers.OPERATOR_MEMORY)
    framework = rows(MEMORY_CURVE, "memory_curve", headers.MEMORY_RECORD)
    modules = rows(MEMORY_CURVE, "module_memory", headers.NPU_MODULE_MEM)
    recording.memory_curve = pl.concat([framework, modules]).sort("time_ns", "component", nulls_last=True)


def _anything(recording: ExportedRank) -> bool:
    tables = ("calls", "links", "step_totals", "totals", "allocations", "memory_curve", "counters")
    return bool(recording.timeline.keys()) or any(not getattr(recording, name).is_empty() for name in tables)
