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
from stepscope.sources.timelines import write_timeline
from stepscope.sources.trace_events.base import Place
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
    events = TraceEvents(path, layout.LAYOUT, sink)
    for batch in events:
        for name, frame in batch.items():
            if not frame.is_empty():
                raw.add(name, frame)
    write_timeline(path, events.first_ns, 0, sink)
    report_strays(raw.drop_strays(), sink.issue, path)
    for rows in matched_flows("forward_backward", lambda: raw.frames("flows", _FLOW), raw.rows("flows")):
        sink.write(FLOWS, rows)
    processes, threads, sides = _labels(raw.whole("metadata"))
    on_host = _on_host(processes, sides)
    if not with_cpu_operators:
        on_host.discard(layout.CPU_OPERATORS)
    places = _places([*events.places], processes, threads, on_host)
    for name in ("operators", "queue", "python", "gc"):
        for frame in raw.batches(name):
            timeline.add("host", _framework(name, frame, places))
    view, labels = TraceView(), set[str | None]()
    calls, overlaps = [view.communication], [view.overlap]
    parts = CallParts(sink.scratch)
    for frame in chain(raw.batches("other"), raw.batches("tasks")):
        found = places[frame["place"].unique()]  # a query costs the same if there is nothing to find
        labels |= {*found["label"]}
        if found["on_host"].any():
            timeline.add("host", _other_host(_at(frame.select(_HOST_EVENT), places, "on_host"), places))
        if found["is_hardware"].any():
            _take_hardware(_at(frame, places, "is_hardware"), places, timeline)
        if found["is_communication"].any():
            work = _at(frame, places, "is_communication")
            calls.append(_take_communication(work, places, timeline, parts))
        if found["is_overlap"].any():
            overlap = _at(frame.select("name", "duration_ns", "place"), places, "is_overlap").group_by("name")
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


def _on_host(processes: dict[str, str], sides: dict[str, str]) -> set[str]:
    """Labels of the processes whose events without a category are ranges of the host."""
    labels = {processes.get(pid, pid) for pid, side in sides.items() if side == "CPU"}
    return labels - {layout.OVERLAP, *layout.COMMUNICATION} | {*layout.HOST_CATEGORIES}


def _places(
    places: list[Place], processes: dict[str, str], threads: dict[tuple[str, str], str], on_host: set[str]
) -> pl.DataFrame:
    """What is known of each place, by its number."""
    planes = _planes(threads)
    rows = []
    for process, thread in places:
        label = processes.get(process, process) if process is not None else None
        key = (process or "", thread or "")
        mark = threads.get(key, "").startswith(layout.STEP_TRACE)
        category = layout.HOST_CATEGORIES.get(label or "", "annotation")
        is_a = (label in on_host, label == layout.HARDWARE, label in layout.COMMUNICATION, label == layout.OVERLAP)
        rows.append((label, process, thread, *is_a, category, mark, *planes.get(key, (None, None, None))))
    return pl.DataFrame(rows, schema=_PLACES, orient="row").with_columns(device=_DEVICE)


_PLACES = {
    **dict.fromkeys(("label", "process", "thread"), pl.String),
    **dict.fromkeys(("on_host", "is_hardware", "is_communication", "is_overlap"), pl.Boolean),
    "category": pl.String,
    "is_mark": pl.Boolean,
    **dict.fromkeys(("plane", "number", "calls"), pl.String),
}
_HOST_EVENT = ("name", "place", "start_ns", "duration_ns", "correlation")


def _planes(threads: dict[tuple[str, str], str]) -> dict[tuple[str, str], tuple[str, str, str]]:
    """The tracks of tasks of communication: name and number of the plane, and the track of its calls, which is the one
    of its group."""
    tracks: dict[tuple[str, str], tuple[str, str, str]] = {}
    group = track = ""
    numbered = [(p, int(t), label) for (p, t), label in threads.items() if t.isdecimal()]
    for process, thread, label in sorted(numbered):
        if label.endswith("Communication"):
            group, track = label.removesuffix("Communication").strip(), str(thread)
        elif label.startswith("Plane"):
            tracks[process, str(thread)] = f"{group} {label}".strip(), label.removeprefix("Plane").strip(), track
    return tracks


def _at(events: pl.DataFrame, places: pl.DataFrame, kind: str) -> pl.DataFrame:
    """The events at places of a kind."""
    wanted = places[kind][events["place"].cast(pl.UInt32)]
    return events if wanted.all() else events.filter(wanted)


def _with(events: pl.DataFrame, places: pl.DataFrame, **columns: str) -> pl.DataFrame:
    """Events with what is known of their places; `columns` are the names here and there."""
    numbers = events["place"].cast(pl.UInt32)
    return events.hstack([places[known][numbers].alias(name) for name, known in columns.items()])


def _framework(name: str, events: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Ranges that the framework recorded as rows of `HOST`."""
    known = {"category": pl.lit("operator" if name == "operators" else name)}
    if name == "operators":
        known |= {column: pl.col(column).replace("", None) for column in ("input_shapes", "input_types")}
        if events["stack"].null_count() < events.height:
            # a stack is recorded as `frame;\r\nframe`
            lines = pl.col("stack").str.replace_all("\r", "", literal=True).str.replace_all(";\n", "\n", literal=True)
            known["stack"] = lines.replace("", None)
    rows = _with(events, places, process="label", thread="thread").with_columns(**known)
    return framework_ranges(shaped(rows, HOST))


def _other_host(host: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Ranges of the host without a category as rows of `HOST`."""
    rows = _with(host, places, process="label", thread="thread", category="category")
    return shaped(rows.with_columns(correlation=pl.when(pl.col("correlation") != 0).then("correlation")), HOST)


def _take_hardware(events: pl.DataFrame, places: pl.DataFrame, timeline: Timeline) -> None:
    """Take kernels and other work of the device but communication."""
    core = pl.col("core")
    hardware = _with(events, places, thread="thread", device="device").with_columns(
        stream=pl.coalesce("stream", pl.col("thread").cast(pl.Int64, strict=False)),
        core=pl.col("task_type").fill_null(""),
    )
    is_kernel = hardware.select(core.is_in(COMPUTE_CORES) | core.str.starts_with("KERNEL_")).to_series()
    timeline.add("compute", shaped(hardware.filter(is_kernel), COMPUTE))
    if is_kernel.all():
        return
    is_memory = core.str.contains(MEMORY_TASK)
    ways = [pl.when(is_memory).then("direction").alias("direction")] if "direction" in hardware.columns else []
    tasks = _with(hardware.filter(~is_kernel), places, is_mark="is_mark").with_columns(
        *ways,
        category=pl.coalesce(
            pl.when(is_memory).then(pl.lit("memory")),
            pl.when("is_mark").then(pl.lit("device_annotation")),
            pl.lit("other"),
        ),
        thread=pl.col("stream").cast(pl.String),
        process=pl.lit(layout.HARDWARE),
    )
    timeline.add("tasks", shaped(tasks, TASKS))


def _take_communication(
    events: pl.DataFrame, places: pl.DataFrame, timeline: Timeline, parts: CallParts
) -> pl.DataFrame:
    """Take the tasks of calls, which run on planes; returns the calls."""
    known = {name: name for name in ("device", "thread", "plane", "number", "calls")}
    placed = _with(events, places, track="process", **known).with_columns(process=pl.lit("Communication"))
    tasks, calls = _parted(placed)
    if tasks.height:
        parts.add_tasks(tasks)
        named = tasks.with_columns(category=pl.lit("communication_task"), thread="plane", size_bytes=None)
        timeline.add("tasks", shaped(named, TASKS))
    if calls.height:
        parts.add_calls(calls)
        said = {name: pl.col(said).str.to_lowercase() == "yes" for name, said in layout.SAID.items()}
        calls = with_payload(calls.with_columns(**said))
    return shaped(calls, COMMUNICATION)


def _parted(events: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Those on planes, and the others."""
    others = events["plane"].null_count()
    if not others:
        return events, events.clear()
    if others == events.height:
        return events.clear(), events
    is_other = events["plane"].is_null()
    return events.filter(~is_other), events.filter(is_other)


def _counters(samples: pl.DataFrame) -> pl.DataFrame:
    """Samples of counters as rows of `counters`, named as those of a database."""
    return COUNTERS.shaped(samples.filter(_IS_COUNTER).select(**_COUNTER).drop_nulls(["time_ns", "value"]))


_COUNTED = pl.col("name")
_IS_CLOCK = _COUNTED.is_in(layout.FREQUENCY)
_IS_COUNTER = _IS_CLOCK | _COUNTED.str.contains(r"^(HBM|DDR|LLC)\b")
_PART = _COUNTED.str.to_lowercase().str.replace(r"/(throughput|hit rate)$", "").str.replace_all("[ /]+", "_")
_UNIT = pl.when(pl.col("ratio").is_null()).then(pl.lit("_bytes_per_s")).otherwise(pl.lit("_hit_ratio"))
_COUNTER = {
    "time_ns": pl.col("start_ns"),
    "name": pl.when(_IS_CLOCK).then(pl.lit("ai_core_frequency_mhz")).otherwise(_PART + _UNIT),
    "device": _DEVICE,
    "value": pl.when(_IS_CLOCK).then("mhz").otherwise(pl.coalesce(pl.col("mib_per_s") * (1 << 20), "ratio")),
}
