"""Reading trace_view.json: host ranges, device work, communication and samples of counters."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import polars as pl

from stepscope.sources.ascend import trace_layout as layout
from stepscope.sources.ascend.collective_tables import with_payload
from stepscope.sources.ascend.communication_tasks import CallParts
from stepscope.sources.ascend.exported_rank import COMMUNICATION, COMPUTE, HOST, TASKS, nothing, shaped
from stepscope.sources.ascend.slice_tables import framework_ranges
from stepscope.sources.ascend.timeline import MEMORY_BYTES, Timeline
from stepscope.sources.base import Sink
from stepscope.sources.flows import matched_flows
from stepscope.sources.plausible import report_strays
from stepscope.sources.spool import EventSpool
from stepscope.sources.trace_events.reader import TraceEvents
from stepscope.tables import COUNTERS, FLOWS

COMPUTE_CORES = ("AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV", "AI_CPU", "AICPU", "DSA_SQE", "WRITE_BACK")
"""Task types that are kernels."""
MEMORY_TASK = r"MEMCPY|MEMSET|SDMA"
_DEVICE = pl.col("process").cast(pl.Int64, strict=False).mod(32)
_FLOW = ["phase", "id", "start_ns", "thread"]


@dataclass
class TraceView:
    """Contents of a trace_view.json other than the events of the timeline."""

    communication: pl.DataFrame = field(default_factory=nothing(COMMUNICATION))
    counters: pl.DataFrame = field(default_factory=nothing(COUNTERS.stored_schema))
    overlap: pl.DataFrame = field(default_factory=nothing({"name": pl.String, "total_ns": pl.Int64}))
    """Sums of the trace's own overlap analysis, to check with."""
    parts: CallParts | None = None
    """The tasks of the calls."""
    process: int | None = None
    on_cpu_only: bool = False
    """Whether the operators themselves ran on the host, as MindSpore records them on a CPU."""


def read_trace_view(path: Path, timeline: Timeline, sink: Sink, *, with_cpu_operators: bool = True) -> TraceView:
    """Read a trace_view.json; damaged events are reported to `sink` and left out.

    Args:
        path: The file.
        timeline: Takes what happened on the host and on the device, but for the calls of communication.
        sink: Takes the flows between operators.
        with_cpu_operators: Whether to take MindSpore's operators on the CPU; False if another file has more about them.
    """
    raw = EventSpool(sink.scratch, MEMORY_BYTES)
    for batch in TraceEvents(path, layout.LAYOUT, sink):
        for name, frame in batch.items():
            if not frame.is_empty():
                raw.add(name, frame)
    report_strays(raw.drop_strays(), sink.issue, path)
    for rows in matched_flows("forward_backward", lambda: raw.frames("flows", _FLOW), raw.rows("flows")):
        sink.write(FLOWS, rows)
    processes, threads, sides = _labels(raw.whole("metadata"))
    for name in ("operators", "queue", "python", "gc"):
        for frame in raw.batches(name):
            timeline.add("host", _framework(name, frame, processes))
    view, labels = TraceView(), set[str | None]()
    calls, overlaps = [view.communication], [view.overlap]
    parts = CallParts(sink.scratch)
    on_host, planes = _on_host(processes, sides), _planes(threads)
    if not with_cpu_operators:
        on_host.discard(layout.CPU_OPERATORS)
    for frame in chain(raw.batches("other"), raw.batches("tasks")):
        labelled = frame.with_columns(label=_process(processes))
        found = {*labelled["label"].unique()}  # a query costs the same if there is nothing to find
        labels |= found
        if here := on_host & found:
            timeline.add("host", _other_host(labelled.filter(pl.col("label").is_in([*here]))))
        if layout.HARDWARE in found:
            _take_hardware(labelled.filter(pl.col("label") == layout.HARDWARE), threads, timeline)
        if found.intersection(layout.COMMUNICATION):
            work = labelled.filter(pl.col("label").is_in(layout.COMMUNICATION))
            calls.append(_take_communication(work, planes, timeline, parts))
        if layout.OVERLAP in found:
            overlap = labelled.filter(pl.col("label") == layout.OVERLAP).group_by("name")
            overlaps.append(overlap.agg(total_ns=pl.sum("duration_ns")))
    view.communication = pl.concat(calls)
    view.parts = parts
    view.overlap = pl.concat(overlaps).group_by("name").agg(pl.sum("total_ns"))
    has_device = view.communication.height or layout.HARDWARE in labels
    view.on_cpu_only = not has_device and layout.CPU_OPERATORS in labels
    view.counters = pl.concat([view.counters, *map(_counters, raw.batches("samples"))])
    python = next((pid for pid, label in processes.items() if label == "Python" and pid.isdecimal()), None)
    view.process = int(python[:18]) if python else None
    return view


def _process(labels: dict[str, str]) -> pl.Expr:
    return pl.col("process").replace(labels) if labels else pl.col("process")


def _labels(
    metadata: pl.DataFrame | None,
) -> tuple[dict[str, str], dict[tuple[str, str], str], dict[str, str]]:
    """Names of processes, names of threads, and the side (`CPU`, `NPU 0`) of processes."""
    if metadata is None:
        return {}, {}, {}
    rows = metadata.select("name", "process", "thread", "label", "labels").rows()
    labels = {p: label for kind, p, _, label, _ in rows if kind == "process_name" and p and label}
    processes = {p: layout.HARDWARE if label == layout.OLD_HARDWARE else label for p, label in labels.items()}
    threads = {(p, t): label for kind, p, t, label, _ in rows if kind == "thread_name" and p and t and label}
    sides = {p: side for kind, p, _, _, side in rows if kind == "process_labels" and p and side}
    return processes, threads, sides


def _framework(name: str, events: pl.DataFrame, processes: dict[str, str]) -> pl.DataFrame:
    """Ranges that the framework recorded as rows of `HOST`."""
    category = "operator" if name == "operators" else name
    known = {"category": pl.lit(category), "process": _process(processes)}
    if name == "operators":
        known |= {column: pl.col(column).replace("", None) for column in ("input_shapes", "input_types")}
        if events["stack"].null_count() < events.height:
            # a stack is recorded as `frame;\r\nframe`
            lines = pl.col("stack").str.replace_all("\r", "", literal=True).str.replace_all(";\n", "\n", literal=True)
            known["stack"] = lines.replace("", None)
    return framework_ranges(shaped(events.with_columns(**known), HOST))


def _on_host(processes: dict[str, str], sides: dict[str, str]) -> set[str]:
    """Labels of the processes whose events without a category are ranges of the host."""
    labels = {processes.get(pid, pid) for pid, side in sides.items() if side == "CPU"}
    return labels - {layout.OVERLAP, *layout.COMMUNICATION} | {*layout.HOST_CATEGORIES}


def _other_host(host: pl.DataFrame) -> pl.DataFrame:
    """Ranges of the host without a category as rows of `HOST`."""
    kind = pl.col("label").replace_strict(layout.HOST_CATEGORIES, default="annotation", return_dtype=pl.String)
    correlation = pl.when(pl.col("correlation") != 0).then("correlation")
    return shaped(host.with_columns(category=kind, process="label", correlation=correlation), HOST)


def _take_hardware(events: pl.DataFrame, threads: dict[tuple[str, str], str], timeline: Timeline) -> None:
    """Take kernels and other work of the device but communication."""
    hardware = events.with_columns(
        stream=pl.coalesce("stream", pl.col("thread").cast(pl.Int64, strict=False)),
        device=_DEVICE,
        core=pl.col("task_type").fill_null(""),
    )
    core = pl.col("core")
    is_kernel = hardware.select(core.is_in(COMPUTE_CORES) | core.str.starts_with("KERNEL_")).to_series()
    timeline.add("compute", shaped(hardware.filter(is_kernel), COMPUTE))
    if is_kernel.all():
        return
    marks = [f"{p} {t}" for (p, t), label in threads.items() if label.startswith(layout.STEP_TRACE)]
    is_mark = pl.concat_str("process", pl.lit(" "), "thread").is_in(marks)
    tasks = hardware.filter(~is_kernel).with_columns(
        category=pl.coalesce(
            pl.when(core.str.contains(MEMORY_TASK)).then(pl.lit("memory")),
            pl.when(is_mark).then(pl.lit("device_annotation")),
            pl.lit("other"),
        ),
        thread=pl.col("stream").cast(pl.String),
        process=pl.lit(layout.HARDWARE),
    )
    timeline.add("tasks", shaped(tasks, TASKS))


def _planes(threads: dict[tuple[str, str], str]) -> pl.DataFrame:
    """The tracks of tasks of communication, each with the track of the calls, which is the one of its group."""
    tracks: list[tuple[str, str, str, str, str]] = []
    group = track = ""
    numbered = [(p, int(t), label) for (p, t), label in threads.items() if t.isdecimal()]
    for process, thread, label in sorted(numbered):
        if label.endswith("Communication"):
            group, track = label.removesuffix("Communication").strip(), str(thread)
        elif label.startswith("Plane"):
            number = label.removeprefix("Plane").strip()
            tracks.append((process, str(thread), f"{group} {label}".strip(), number, track))
    schema = dict.fromkeys(("process", "thread", "plane", "number", "calls"), pl.String)
    return pl.DataFrame(tracks, schema=schema, orient="row")


def _take_communication(
    events: pl.DataFrame, planes: pl.DataFrame, timeline: Timeline, parts: CallParts
) -> pl.DataFrame:
    """Take the tasks of calls, which run on planes; returns the calls."""
    placed = events.join(planes, on=["process", "thread"], how="left", maintain_order="left").with_columns(
        device=_DEVICE, process=pl.lit("Communication"), track="process"
    )
    is_call = placed["plane"].is_null()
    tasks = placed.filter(~is_call)
    if tasks.height:
        parts.add_tasks(tasks)
        named = tasks.with_columns(category=pl.lit("communication_task"), thread="plane", size_bytes=None)
        timeline.add("tasks", shaped(named, TASKS))
    calls = placed.filter(is_call)
    if calls.height:
        parts.add_calls(calls)
        said = {name: pl.col(said).str.to_lowercase() == "yes" for name, said in layout.SAID.items()}
        calls = with_payload(calls.with_columns(**said))
    return shaped(calls, COMMUNICATION)


def _counters(samples: pl.DataFrame) -> pl.DataFrame:
    """Samples of counters as rows of `counters`, named as those of a database."""
    name = pl.col("name")
    is_clock = name.is_in(layout.FREQUENCY)
    part = name.str.to_lowercase().str.replace(r"/(throughput|hit rate)$", "").str.replace_all("[ /]+", "_")
    unit = pl.when(pl.col("ratio").is_null()).then(pl.lit("_bytes_per_s")).otherwise(pl.lit("_hit_ratio"))
    known = samples.filter(is_clock | name.str.contains(r"^(HBM|DDR|LLC)\b")).select(
        time_ns="start_ns",
        name=pl.when(is_clock).then(pl.lit("ai_core_frequency_mhz")).otherwise(part + unit),
        device=_DEVICE,
        value=pl.when(is_clock).then("mhz").otherwise(pl.coalesce(pl.col("mib_per_s") * (1 << 20), "ratio")),
    )
    return COUNTERS.shaped(known.drop_nulls(["time_ns", "value"]))
