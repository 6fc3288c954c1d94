"""Reading trace_view.json: host ranges, device work, communication and clock samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from stepscope.sources.ascend import trace_layout as layout
from stepscope.sources.ascend.collective_tables import with_payload
from stepscope.sources.ascend.recording import COMMUNICATION, COMPUTE, HOST, TASKS, empty, no_rows, nothing, shaped
from stepscope.sources.ascend.slice_tables import annotated
from stepscope.sources.plausible import STRAY, STRAY_REMEDY, without_strays
from stepscope.sources.trace_events import read_events
from stepscope.tables import COUNTERS, FLOWS

if TYPE_CHECKING:
    from stepscope.sources.base import Sink

COMPUTE_CORES = ("AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV", "AI_CPU", "AICPU", "DSA_SQE", "WRITE_BACK")
"""Task types that are kernels."""
MEMORY_TASK = r"MEMCPY|MEMSET|SDMA"


@dataclass
class TraceView:
    """What a trace_view.json holds, by what it becomes."""

    host: pl.DataFrame = field(default_factory=nothing(HOST))
    compute: pl.DataFrame = field(default_factory=nothing(COMPUTE))
    tasks: pl.DataFrame = field(default_factory=nothing(TASKS))
    communication: pl.DataFrame = field(default_factory=nothing(COMMUNICATION))
    counters: pl.DataFrame = field(default_factory=nothing(COUNTERS.stored_schema))
    flows: pl.DataFrame = field(default_factory=nothing(FLOWS.stored_schema))
    overlap: pl.DataFrame = field(default_factory=nothing({"name": pl.String, "total_ns": pl.Int64}))
    """Sums of the trace's own overlap analysis, to check with."""
    process: int | None = None
    on_cpu_only: bool = False
    """Whether the operators themselves ran on the host, as MindSpore records them on a CPU."""


def read_trace_view(path: Path, sink: Sink) -> TraceView:
    """Read a trace_view.json; damaged events are told through `sink` and left out."""
    parts: dict[str, list[pl.DataFrame]] = {}
    for batch in read_events(path, layout.LAYOUT, report=sink.issue, workers=sink.workers):
        for name, frame in batch.frames.items():
            if not frame.is_empty():
                parts.setdefault(name, []).append(frame)
    frames = {name: pl.concat(batches, how="vertical") for name, batches in parts.items()}
    frames, strays = without_strays(frames)
    if strays:
        sink.issue("warning", path, f"{strays} events {STRAY}; they are left out", STRAY_REMEDY, lost=strays)
    processes, threads, labels = _labels(frames.get("metadata"))
    other = frames.get("other")
    if other is None:
        other = pl.DataFrame(schema={"process": pl.String, "thread": pl.String, "name": pl.String})
    other = other.with_columns(label=_label("process", processes))
    view = TraceView(host=_host(frames, other, processes, labels))
    if "start_ns" in other.columns:
        _read_device(view, other, threads)
    view.counters = _frequency(frames.get("frequency"))
    view.flows = _forward_backward(frames.get("flows"))
    python = next((pid for pid, label in processes.items() if label == "Python" and pid.isdecimal()), None)
    view.process = int(python[:18]) if python else None
    return view


def _label(column: str, labels: dict[str, str]) -> pl.Expr:
    name = pl.col(column)
    return name.replace(labels) if labels else name


def _labels(
    metadata: pl.DataFrame | None,
) -> tuple[dict[str, str], dict[tuple[str, str], str], dict[str, str]]:
    """Names of processes, names of threads, and the side (`CPU`, `NPU 0`) of processes."""
    if metadata is None:
        return {}, {}, {}
    rows = metadata.select("name", "process", "thread", "label", "labels").rows()
    processes = {p: label for kind, p, _, label, _ in rows if kind == "process_name" and p and label}
    threads = {(p, t): label for kind, p, t, label, _ in rows if kind == "thread_name" and p and t and label}
    sides = {p: side for kind, p, _, _, side in rows if kind == "process_labels" and p and side}
    return processes, threads, sides


def _host(
    frames: dict[str, pl.DataFrame], other: pl.DataFrame, processes: dict[str, str], sides: dict[str, str]
) -> pl.DataFrame:
    """All ranges on the host as rows of `HOST`."""
    rows = []
    if (operators := frames.get("operators")) is not None:
        rows.append(
            operators.with_columns(
                category=annotated(pl.lit("operator"), pl.col("name")),
                process=_label("process", processes),
                # Ops outside autograd carry -1, ops on their own thread 0.
                sequence=pl.when(pl.col("sequence") >= 0).then("sequence"),
                forward_thread=pl.when(pl.col("forward_thread") > 0).then("forward_thread"),
                stack=frame_lines(pl.col("stack")),
                input_shapes=pl.col("input_shapes").replace("", None),
                input_types=pl.col("input_types").replace("", None),
            )
        )
    rows += [
        frames[name].with_columns(category=pl.lit(name), process=_label("process", processes))
        for name in ("queue", "python", "gc")
        if name in frames
    ]
    if "start_ns" in other.columns:
        on_cpu = [processes.get(pid, pid) for pid, side in sides.items() if side == "CPU"]
        host = other.filter(pl.col("label").is_in([*layout.HOST_CATEGORIES, *on_cpu]))
        kind = pl.col("label").replace_strict(layout.HOST_CATEGORIES, default="annotation", return_dtype=pl.String)
        rows.append(
            host.with_columns(
                category=kind, process="label", correlation=pl.when(pl.col("correlation") != 0).then("correlation")
            )
        )
    return pl.concat([shaped(frame, HOST) for frame in rows]) if rows else empty(HOST)


def frame_lines(stack: pl.Expr) -> pl.Expr:
    r"""A recorded stack (`frame;\r\nframe`) with one frame a line."""
    return stack.str.replace_all("\r", "", literal=True).str.replace_all(";\n", "\n", literal=True).replace("", None)


def _read_device(view: TraceView, other: pl.DataFrame, threads: dict[tuple[str, str], str]) -> None:
    """Take device work and communication from the events without a category."""
    hardware = other.filter(pl.col("label") == layout.HARDWARE).with_columns(
        stream=pl.coalesce("stream", pl.col("thread").cast(pl.Int64, strict=False)),
        device=pl.col("process").cast(pl.Int64, strict=False).mod(32),
        process=pl.lit(layout.HARDWARE),
        task_type=pl.col("task_type").fill_null(""),
    )
    is_kernel = pl.col("task_type").is_in(COMPUTE_CORES) | pl.col("task_type").str.starts_with("KERNEL_")
    view.compute = shaped(hardware.filter(is_kernel).with_columns(core="task_type"), COMPUTE)
    is_memory = pl.col("task_type").str.contains(MEMORY_TASK)
    kind = pl.when(is_memory).then(pl.lit("memory")).otherwise(pl.lit("other"))
    tasks = hardware.filter(~is_kernel).with_columns(category=kind, thread=pl.col("stream").cast(pl.String))
    called, subtasks = _communication(other.filter(pl.col("label").is_in(layout.COMMUNICATION)), threads)
    view.communication = called
    view.tasks = pl.concat([shaped(tasks, TASKS), subtasks])
    view.overlap = other.filter(pl.col("label") == layout.OVERLAP).group_by("name").agg(total_ns=pl.sum("duration_ns"))
    has_device = not (hardware.is_empty() and called.is_empty())
    view.on_cpu_only = not has_device and bool((other["label"] == layout.CPU_OPERATORS).any())


def _communication(rows: pl.DataFrame, threads: dict[tuple[str, str], str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Calls and their tasks, which run on planes: the tracks after the one of their group."""
    tracks: dict[tuple[str, str], str] = {}
    group = ""
    numbered = [(p, int(t), label) for (p, t), label in threads.items() if t.isdecimal()]
    for process, thread, label in sorted(numbered):
        if label.endswith("Communication"):
            group = label.removesuffix("Communication").strip()
        elif label.startswith("Plane"):
            tracks[process, str(thread)] = f"{group} {label}".strip()
    planes = pl.DataFrame(
        [(process, thread, track) for (process, thread), track in tracks.items()],
        schema={"process": pl.String, "thread": pl.String, "plane": pl.String},
        orient="row",
    )
    placed = rows.join(planes, on=["process", "thread"], how="left")
    device = pl.col("process").cast(pl.Int64, strict=False).mod(32)
    placed = placed.with_columns(device=device, process=pl.lit("Communication"))
    calls = with_payload(placed.filter(pl.col("plane").is_null()))
    tasks = placed.filter(pl.col("plane").is_not_null()).with_columns(
        category=pl.lit("communication_task"), thread="plane", size_bytes=None
    )
    return shaped(calls, COMMUNICATION), shaped(tasks, TASKS)


def _frequency(rows: pl.DataFrame | None) -> pl.DataFrame:
    if rows is None:
        return no_rows(COUNTERS)
    return COUNTERS.conform(
        rows.drop_nulls(["start_ns", "value"]).select(
            time_ns="start_ns",
            name=pl.lit("ai_core_frequency_mhz"),
            device=pl.col("process").cast(pl.Int64, strict=False).mod(32),
            value="value",
        )
    )


def _forward_backward(rows: pl.DataFrame | None) -> pl.DataFrame:
    if rows is None:
        return no_rows(FLOWS)
    rows = rows.drop_nulls(["id", "start_ns"])
    tails = rows.filter(pl.col("phase") == "s").unique("id", keep="first", maintain_order=True)
    heads = rows.filter(pl.col("phase") == "f").unique("id", keep="first", maintain_order=True)
    pairs = tails.join(heads, on="id", suffix="_to").sort("start_ns", "id")
    return FLOWS.conform(
        pairs.select(
            kind=pl.lit("forward_backward"),
            flow="id",
            from_ns="start_ns",
            from_thread="thread",
            to_ns="start_ns_to",
            to_thread="thread_to",
        )
    )
