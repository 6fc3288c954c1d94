"""What the host did, for the timeline: steps, operators and ranges by thread, counters, arrows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from stepscope.export.ascend_ms.trace_tracks import (
    COLLECTION,
    COUNTERS,
    HOST,
    RUNTIME,
    Event,
    Tracks,
    complete,
    in_order,
)
from stepscope.export.formatting import us_text
from stepscope.export.rank_export import RankExport
from stepscope.tables.steps import WHOLE_RECORDING

STEP = "ProfilerStep#"
_PROCESS = {"runtime": RUNTIME, "gc": COLLECTION}
_CATEGORY = {"operator": "cpu_op", "python": "python_function", "gc": "GC"}
_LEFT = ("kernel", "memory", "communication", "communication_task", "device_annotation")
"""Slices of the device, which the device's own tables give."""
_ARGUMENTS = {
    "sequence": "Sequence number",
    "forward_thread": "Fwd thread id",
    "input_shapes": "Input Dims",
    "input_types": "Input type",
    "text": "Call stack",
}


def step_events(export: RankExport, tracks: Tracks) -> Iterator[Event]:
    """The steps as ranges of the main thread."""
    steps = export.rows("steps").filter(pl.col("window") != WHOLE_RECORDING)
    for step, start, end in steps.sort("start_ns").select("step", "start_ns", "end_ns").iter_rows():
        track = tracks.thread(HOST, str(tracks.pid))
        yield complete(f"{STEP}{step}", track, start, end - start, cat="cpu_op", args={})


def host_events(export: RankExport, tracks: Tracks) -> Iterator[Event]:
    """All ranges of the host but the steps, and the arrows from forward to backward, in order of start."""
    slices = export.rows("slices").filter(
        ~pl.col("category").is_in(_LEFT) & pl.col("stream").is_null() & ~pl.col("name").str.starts_with(STEP)
    )
    stacks = export.rows("stacks").select("stack", "text")
    details = export.rows("operators").select("slice", "stack", *(name for name in _ARGUMENTS if name != "text"))
    details = details.join(stacks, on="stack", how="left").drop("stack")
    rows = in_order(slices).join(details, on="slice", how="left", maintain_order="left")
    columns = ["start_ns", "duration_ns", "category", "name", "thread", "correlation", *_ARGUMENTS]
    for start, duration, category, name, thread, correlation, *values in rows.select(columns).iter_rows():
        track = tracks.thread(_PROCESS.get(category, HOST), thread or str(tracks.pid))
        args = _arguments(correlation, values)
        kind = {"cat": _CATEGORY[category]} if category in _CATEGORY else {}
        yield complete(name, track, start, duration, **kind, args=args)
    yield from _arrows(export, tracks)


def counter_events(export: RankExport, tracks: Tracks) -> Iterator[Event]:
    """Samples of counters."""
    for name, time, value in export.rows("counters").sort("time_ns").select("name", "time_ns", "value").iter_rows():
        pid = tracks.process(COUNTERS)
        yield {"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": us_text(time), "args": {"value": value}}


def _arguments(correlation: int | None, values: list[Any]) -> dict[str, Any]:
    args = {title: value for title, value in zip(_ARGUMENTS.values(), values, strict=True) if value is not None}
    if "Call stack" in args:
        args["Call stack"] = args["Call stack"].replace("\n", ";\r\n")
    if correlation is not None:
        args["connection_id"] = correlation
    return args


def _arrows(export: RankExport, tracks: Tracks) -> Iterator[Event]:
    flows = export.rows("flows").filter(pl.col("kind") == "forward_backward").drop_nulls(["from_ns", "to_ns"])
    columns = ["flow", "from_ns", "from_thread", "to_ns", "to_thread"]
    for flow, *ends in flows.sort("from_ns").select(columns).iter_rows():
        for phase, time, thread in (("s", *ends[:2]), ("f", *ends[2:])):
            pid, tid = tracks.thread(HOST, thread or str(tracks.pid))
            place = {"pid": pid, "tid": tid, "ts": us_text(time)}
            yield {"ph": phase, "bp": "e", "name": "fwdbwd", "id": flow, **place, "cat": "fwdbwd"}
