"""The host in trace_view.json: steps, operators and annotations, task queues, calls of the runtime, and the arrows
between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from stepscope.export.ascend_ms.trace_tracks import COLLECTION, HOST, RUNTIME, Tracks, in_order, span
from stepscope.export.rank_export import RankExport
from stepscope.sources.ascend.slice_tables import ANNOTATIONS
from stepscope.tables.slices import MARKS, MODULE_MARKS
from stepscope.tables.steps import WHOLE_RECORDING
from stepscope.timeline.writing.events import arrow_end, json_value

STEP = "ProfilerStep#"
OF_DEVICE = pl.col("stream").is_not_null() | pl.col("device").is_not_null()
"""Slices of the device."""
ELSEWHERE = ("kernel", "memory", "communication", "communication_task", "device_annotation")
"""Categories of slices that are not the host's."""
_PROCESS = (
    pl.when(pl.col("category") == "runtime")
    .then(pl.lit(RUNTIME))
    .when(pl.col("category") == "gc")
    .then(pl.lit(COLLECTION))
    .when(pl.col("process").is_in([MARKS, MODULE_MARKS]))
    .then("process")
    .otherwise(pl.lit(HOST))
)
_IS_ANNOTATION = pl.any_horizontal(pl.col("name").str.starts_with(word) for word in ANNOTATIONS)
_CATEGORY = (
    pl.when((pl.col("category") == "operator") | ((pl.col("category") == "annotation") & _IS_ANNOTATION))
    .then(pl.lit("cpu_op"))
    .when(pl.col("category") == "python")
    .then(pl.lit("python_function"))
    .when(pl.col("category") == "gc")
    .then(pl.lit("GC"))
    .when((pl.col("category") == "queue") & pl.col("name").str.starts_with("Dequeue"))
    .then(pl.lit("dequeue"))
    .when(pl.col("category") == "queue")
    .then(pl.lit("enqueue"))
)
"""What the format calls ranges; marks of data loaders and optimizers are operators there, other annotations have none,
as readers would take them for operators."""
_ARGUMENTS = {
    "sequence": "Sequence number",
    "forward_thread": "Fwd thread id",
    "input_shapes": "Input Dims",
    "input_types": "Input type",
    "text": "Call stack",
}
_ARROWS = {"forward_backward": ("fwdbwd", "fwdbwd"), "enqueue_dequeue": ("enqueue_to_dequeue", "async_task_queue")}
"""Name and category of the format, by the kind of a flow; others have theirs."""


def step_events(export: RankExport, tracks: Tracks) -> Iterator[str]:
    """The steps as ranges of the thread that marked them, else of the main thread.

    These are `steps` and not the tracks of `stepscope timeline`, which name steps by graph and have phases.
    """
    marks = export.lazy("slices").filter(pl.col("name").str.starts_with(STEP)).select("start_ns", "thread")
    threads = dict(marks.collect().sort("start_ns", maintain_order=True).iter_rows())
    steps = export.rows("steps").filter(pl.col("window") != WHOLE_RECORDING)
    for step, start, end in steps.sort("start_ns").select("step", "start_ns", "end_ns").iter_rows():
        yield span(f"{STEP}{step}", tracks.host(threads.get(start)), start, end - start, category="cpu_op")


def host_events(export: RankExport, tracks: Tracks) -> Iterator[str]:
    """All ranges of the host but the steps, in order of start, and the recorded arrows between them.

    These are `slices` and not the tracks of `stepscope timeline`: the format has the numbers of threads, and it tells
    kinds of ranges by their process and category.
    """
    slices = export.rows("slices").filter(
        ~pl.col("category").is_in(ELSEWHERE) & ~OF_DEVICE & ~pl.col("name").str.starts_with(STEP)
    )
    stacks = export.rows("stacks").select("stack", "text")
    details = export.rows("operators").select("slice", "stack", *(name for name in _ARGUMENTS if name != "text"))
    details = details.join(stacks, on="stack", how="left").drop("stack")
    rows = in_order(slices).join(details, on="slice", how="left", maintain_order="left")
    rows = rows.with_columns(label=_CATEGORY, side=_PROCESS)
    columns = ["start_ns", "duration_ns", "side", "category", "label", "name", "thread", "correlation", *_ARGUMENTS]
    for start, duration, side, category, label, name, thread, correlation, *values in rows.select(columns).iter_rows():
        track = tracks.host(thread, side)
        number = "correlation_id" if category == "queue" else "connection_id"
        yield span(name, track, start, duration, _arguments(number, correlation, values), category=label)
    yield from _arrows(export, tracks)


def _arguments(number: str, correlation: int | None, values: list[Any]) -> dict[str, Any]:
    args = {title: value for title, value in zip(_ARGUMENTS.values(), values, strict=True) if value is not None}
    if "Call stack" in args:
        args["Call stack"] = args["Call stack"].replace("\n", ";\r\n")
    if correlation is not None:
        args[number] = correlation
    return args


def _arrows(export: RankExport, tracks: Tracks) -> Iterator[str]:
    """All flows that are recorded with both ends, if some steps are chosen those from ranges in them."""
    flows = export.rows("flows").drop_nulls(["from_ns", "to_ns"])
    if export.steps is not None:
        chosen = export.lazy("slices").select(from_ns="start_ns", from_thread="thread").collect()
        flows = flows.join(chosen, on=chosen.columns, how="semi", maintain_order="left")
    columns = ["kind", "flow", "from_ns", "from_thread", "to_ns", "to_thread"]
    for kind, flow, *ends in flows.sort("from_ns", maintain_order=True).select(columns).iter_rows():
        name, category = _ARROWS.get(kind, (kind, kind))
        for is_tail, time, thread in ((True, *ends[:2]), (False, *ends[2:])):
            yield arrow_end(
                name, tracks.host(thread), time, json_value(flow), is_tail=is_tail, category=category, as_text=True
            )
