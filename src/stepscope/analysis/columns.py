"""How an analysis declares its columns, and the columns that several analyses share, so that a name means one thing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from stepscope.tables.base import ORDINARY, Column
from stepscope.tables.steps import WINDOWS

SHARED: dict[str, Column] = {
    column.name: column
    for column in (
        Column("rank", "int32", "Global rank.", nullable=False),
        Column("step", "int32", "Number of the step as recorded; 0 if no steps are marked."),
        Column("group", "string", "Key of the process group, the same on every member; null if not recorded."),
        Column("operation", "string", "Operation of the call, e.g. `all_reduce`."),
        Column("name", "string", "Name of the operator or kernel."),
        Column("size_bytes", "int64", "Payload of one call; null if not recorded.", title="size"),
        Column("on_device", "bool", "True on the device, false on the host."),
        Column("start_ns", "int64", "Start.", moment=True),
        Column("end_ns", "int64", "End.", moment=True),
        Column("offset_ns", "int64", "How far the rank's clock is ahead of the common one; 0 if that is within noise."),
        Column("wait_ns", "int64", "Total waiting or dispatch time before its calls, as reported by the source."),
        Column("calls", "int64", "Number of calls.", importance=36),
        Column("group_name", "string", "Name of the process group; null if it has none.", title="group"),
        Column(
            "cost_ns",
            "int64",
            "What the mean step takes longer because of it: its share of what mending all would save.",
        ),
        Column("score", "float64", "How far it stands out, in robust standard deviations.", importance=33),
        Column(
            "bandwidth_bytes_per_s",
            "float64",
            "Bytes divided by time, in the slower direction.",
            title="bandwidth",
            importance=55,
        ),
        Column("transmit_ns", "int64", "Communication without waiting.", importance=53),
        Column("count", "int64", "Number of calls.", importance=61),
        Column("total_ns", "int64", "Total time."),
        Column("mean_ns", "int64", "Mean.", importance=45),
        Column("min_ns", "int64", "Shortest.", importance=34),
        Column("median_ns", "int64", "Median.", importance=43),
        Column("p95_ns", "int64", "95th percentile (an observed value)."),
        Column("max_ns", "int64", "Longest.", importance=35),
        Column("wait_ratio", "float64", "Share of the steps' time spent waiting for batches.", importance=56),
        Column(
            "phase",
            "string",
            "Part of the step: `interval` (before forward), `forward and backward`, `tail`; null if not marked.",
        ),
        Column("window", "string", "How the window of the step was determined.", values=WINDOWS),
        Column("window_start_ns", "int64", "Start of the step's window.", moment=True),
        Column("window_ns", "int64", "Length of the step's window.", title="{step_time}"),
        Column("by_phases", "bool", "True if only the phases of the step are known, as no operators were recorded."),
        Column("graph", "int64", "Number of the compiled graph (model); null if there is none."),
        Column("step_ns", "int64", "Length of the step's window.", title="{step_time}"),
        Column("interval_ns", "int64", "Mean time from batch to batch; null for a single batch."),
        Column("compile_ns", "int64", "Time spent compiling."),
        Column("checkpoint_ns", "int64", "Time spent writing checkpoints."),
        Column("stream", "int32", "Device stream.", importance=46),
        Column("place", "int64", "Position among calls of its name (or operation) in step and stream, from 0."),
        Column("duration_ns", "int64", "Length."),
        Column("steps", "int64", "Number of steps.", importance=39),
        Column("mean_without_first_ns", "int64", "Mean without the rank's first step; null if there is only one step."),
        Column("input_shapes", "string", "Shapes of the inputs, as recorded."),
        Column("flops", "float64", "FLOPs of one call; null if they cannot be computed from its shapes."),
        Column("flops_per_s", "float64", "FLOPs divided by the time of the operators that performed them."),
        Column("cube_flops_per_s", "float64", "Rate of the cube (matrix) unit; null if unknown.", importance=31),
        Column("vector_flops_per_s", "float64", "Rate of the vector unit; null if unknown.", importance=29),
        Column("cube_flops", "float64", "FLOPs of one call on the cube unit (all if undivided).", importance=47),
        Column("vector_flops", "float64", "FLOPs of one call on the vector unit; null if unknown.", importance=30),
        Column("data_type", "string", "Data type."),
        Column(
            "found_by",
            "string",
            "Where the FLOPs come from: `stated` by the source, hardware `counters`, or input `shapes`.",
            importance=32,
        ),
        Column("unit", "string", "List that it belongs to, e.g. `AI_CORE`, `AI_CPU`, `CUDA`, `HOST_CPU`, `CPU`."),
        Column("type", "string", "Operator type; null if not recorded.", importance=41),
        Column("full_name", "string", "Full name: the position in the model; null if not recorded.", importance=48),
        Column("share_ratio", "float64", "Share of the rank's self time.", title="share", importance=59),
        Column("loader", "string", "Data loader."),
        Column("batches", "int64", "Number of batches; null if not recorded."),
        Column("ready", "float64", "Mean number of batches still ready after one was taken; null if not recorded."),
        Column("queue", "string", "Queue: `get_next` on the device, `device_queue` or `dataset_iterator` on the host."),
        Column("queue_size", "int64", "Items in the queue at that time."),
        Column(
            "queue_capacity",
            "int64",
            "Capacity of the queue; null if there is no queue or it is unknown.",
            importance=27,
        ),
        Column("get_ns", "int64", "Total time spent waiting for the dataset pipeline; null if not recorded."),
        Column("push_ns", "int64", "Total time spent passing batches on; null if not recorded."),
        Column("empty", "int64", "Batches that found the queue empty; null if its size is unknown."),
        Column("full", "int64", "Batches that found the queue full; null if its size or capacity is unknown."),
        Column("empty_ratio", "float64", "Share of batches that found the queue empty."),
        Column("mean_size", "float64", "Mean number of items in the queue."),
        Column("mean_total_ns", "float64", "Mean cost of a batch."),
        Column("workers", "int32", "Worker processes or threads."),
        Column("worker_processors", "float64", "Mean processors that all workers kept busy; null if not sampled."),
        Column("host_idle_ratio", "float64", "Mean idle share of the host's processors; null if not sampled."),
        Column("processors_per_worker", "float64", "Mean number of processors that a worker kept busy.", importance=18),
        Column("computing_ns", "int64", "Time spent computing.", title="computing"),
        Column(
            "data_loading_ns",
            "int64",
            "Time spent waiting for the next batch; may overlap the others.",
            title="data wait",
            importance=57,
        ),
        Column("memory_ns", "int64", "Time spent copying or filling memory."),
        Column("communication_ns", "int64", "Time spent communicating.", title="comm.", importance=50),
        Column("overlapped_ns", "int64", "Communicating and computing at once.", title="comm. hidden", importance=44),
        Column("communication_not_overlapped_ns", "int64", "Communicating but not computing.", title="comm. exposed"),
        Column(
            "memory_not_overlapped_ns",
            "int64",
            "Time in which only memory operations run.",
            title="memory exposed",
            importance=49,
        ),
        Column("free_ns", "int64", "Time without computing, communicating or memory operations.", title="idle"),
        Column("kind", "string", "Kind of device work.", values=("compute", "communication", "memory")),
        Column("component", "string", "Allocator as recorded, e.g. `PTA`; null for the framework's own allocator."),
        Column("device", "int32", "Device index; null for host memory."),
        Column("peak_bytes", "int64", "Peak of the memory curve, including the static part."),
        Column(
            "capacity_bytes",
            "int64",
            "Total memory of the device (of the host for host memory); null if unknown.",
        ),
        Column("node", "int32", "Node of the compiled graph; null for memory over time."),
        Column("time_ns", "int64", "When it was sampled.", moment=True),
        Column("static_bytes", "int64", "Part that stays allocated for the whole graph."),
        Column("allocations", "int64", "Number of allocations.", importance=13),
        Column("core", "string", "Core type that ran it, e.g. `AI_CORE`; null if not recorded.", importance=40),
        Column("self_ns", "int64", "Time excluding its direct children on the same thread."),
        Column("activity_ns", "int64", "Total time of the kernels that it launched directly; null if unknown."),
        Column("activities", "int64", "Number of kernels that it launched directly; null if unknown."),
        Column("process", "int64", "Process id."),
        Column("processors", "int32", "Number of processors of the host; shares refer to all of them."),
        Column("samples", "int64", "Number of samples.", importance=19),
        Column("function", "string", "Name of the function."),
        Column("file", "string", "File that defines it; null for a built-in function."),
        Column("line", "int64", "Its first line; null for a built-in function."),
        Column("called_by", "string", "For a built-in function, its caller with file and line; else null."),
        Column("cause", "string", "Cause of the idle time (see `idle`)."),
        Column("recorded_ns", "int64", "Length of the whole recording."),
        Column("module", "string", "Module of the framework, or `process` for samples of the whole process."),
        Column("event", "string", "Event of the module; null if it has none."),
        Column("stage", "string", "Stage of the event, or an operator; null if it has none."),
        Column("points", "int64", "Number of rows of `host_memory_curve`."),
        Column("operator", "string", "Dataset operator: type and number, e.g. `MapOp_3`."),
        Column("shapes", "int64", "Number of different shapes."),
    )
}


def meaning(name: str, doc: str, values: tuple[str, ...] = ()) -> Column:
    """A shared column with a more specific meaning in one answer.

    Args:
        name: Its name in `SHARED`, which declares its type, title and importance.
        doc: Its meaning in this answer.
        values: All values that it can have in this answer.
    """
    return replace(SHARED[name], doc=doc, values=values)


def columns(
    *declared: str | Column, nulls: str | None = None, keep: str = "", titles: Mapping[str, str] | None = None
) -> tuple[Column, ...]:
    """The columns of an answer, in order.

    Args:
        declared: Its own columns, and names of `SHARED` columns, separated by spaces.
        nulls: Names of the columns that may be null. If given, all others never are.
        keep: Names of the columns that a narrow display keeps longest, the most important first.
        titles: Headings that differ from those of the shared columns.

    Raises:
        KeyError: If a name is not in `SHARED`, or not among the columns.

    Examples:
        >>> [column.name for column in columns("rank step", Column("own_ns", "int64", "Own time."))]
        ['rank', 'step', 'own_ns']
    """
    found: dict[str, Column] = {}
    for one in declared:
        for column in [one] if isinstance(one, Column) else [SHARED[name] for name in one.split()]:
            found[column.name] = column
    changes: dict[str, dict[str, Any]] = {name: {} if nulls is None else {"nullable": False} for name in found}
    for name in (nulls or "").split():
        changes[name]["nullable"] = True
    for place, name in enumerate(keep.split()):
        changes[name]["importance"] = 2 * ORDINARY - place
    for name, title in (titles or {}).items():
        changes[name]["title"] = title
    return tuple(_changed(column, changes[name]) for name, column in found.items())


def _changed(column: Column, changes: Mapping[str, Any]) -> Column:
    """The column with changes; itself if it has them, as thousands of columns are declared when a command starts."""
    differ = any(getattr(column, name) != value for name, value in changes.items())
    return replace(column, **changes) if differ else column


def names(declared: Iterable[Column]) -> list[str]:
    """The names of columns, in order."""
    return [column.name for column in declared]
