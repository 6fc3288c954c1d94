"""What the device did, for the timeline: kernels by stream, communication by group, and how both overlap.

On a host alone, communication and overlap are what its threads did; there are no kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from stepscope.analysis.methods.intervals import WINDOW
from stepscope.analysis.step.activity import WORK
from stepscope.errors import Unavailable
from stepscope.export.ascend_ms.calls import named_calls
from stepscope.export.ascend_ms.trace_tracks import (
    COMMUNICATION,
    DEVICE,
    OVERLAP,
    Event,
    Tracks,
    complete,
    in_order,
)
from stepscope.export.rank_export import RankExport
from stepscope.export.timelines import overlaps
from stepscope.sources.ascend.collective_tables import ELEMENT_BYTES

OVERLAPS = {
    "computing": "Computing",
    "communication": "Communication",
    "communication_alone": "Communication(Not Overlapped)",
    "free": "Free",
}
"""Rows of the overlap analysis, of each of `overlaps`."""
ELEMENT_TYPES = {
    "float": "FP32",
    "double": "FP64",
    "c10::half": "FP16",
    "half": "FP16",
    "c10::bfloat16": "BFP16",
    "bfloat16": "BFP16",
    "int": "INT32",
    "long int": "INT64",
    "long": "INT64",
    "short": "INT16",
    "signed char": "INT8",
    "unsigned char": "UINT8",
    "byte": "UINT8",
    "bool": "UINT8",
}
"""Element types as frameworks record them, and as the format does."""


def kernel_events(export: RankExport, tracks: Tracks) -> Iterator[Event]:
    """Compute kernels and memory operations by stream."""
    kind = str(export.facts.get("device_kind") or "device").upper()
    task = (
        pl.when(pl.col("kind") == "compute")
        .then(pl.col("core").fill_null(f"KERNEL_{kind}"))
        .when(pl.col("name").str.contains("(?i)memset"))
        .then(pl.lit("MEMSET_ASYNC"))
        .otherwise(pl.lit("MEMCPY_ASYNC"))
    )
    rows = in_order(export.rows("kernels").filter(pl.col("kind") != "communication")).select(
        "start_ns", "duration_ns", "name", "stream", "correlation", "size_bytes", task.alias("task")
    )
    for start, duration, name, stream, correlation, size, task_type in rows.iter_rows():
        track = tracks.thread(DEVICE, str(stream or 0), f"Stream {stream or 0}")
        known = {"Stream Id": stream, "connection_id": correlation, "size(B)": size}
        args = {"Task Type": task_type, **{title: value for title, value in known.items() if value is not None}}
        yield complete(name, track, start, duration, args=args)


def communication_events(export: RankExport, tracks: Tracks) -> Iterator[Event]:
    """Calls of communication by group."""
    places: dict[str | None, int] = {}
    for row in named_calls(export).iter_rows(named=True):
        place = places.setdefault(row["group"], len(places))
        track = tracks.thread(COMMUNICATION, str(place), f"Group {place} Communication")
        yield complete(row["call"], track, row["start_ns"], row["duration_ns"], args=_payload(row))


def overlap_events(export: RankExport, tracks: Tracks) -> Iterator[Event]:
    """When the rank was computing, communicating, both, or neither, from its first work to its last."""
    try:
        activity: pl.DataFrame = export.run.analyse("activity")
    except Unavailable:
        return
    work = activity.filter(pl.col("what").is_in(WORK))
    if work.is_empty():
        return
    window = work.group_by("rank").agg(pl.min("start_ns"), pl.max("end_ns"), pl.lit(0, pl.Int64).alias(WINDOW))
    found = overlaps(activity, window.lazy())
    for place, (part, name) in enumerate(OVERLAPS.items()):
        for start, end in found[part].iter_rows():
            yield complete(name, tracks.thread(OVERLAP, str(place), name), start, end - start)


def _payload(row: dict[str, Any]) -> dict[str, Any]:
    """What is known of a call's data; the format gives its size as a number of elements."""
    recorded = str(row["element_type"] or "")
    element = ELEMENT_TYPES.get(recorded.lower(), recorded)
    args: dict[str, Any] = {"data_type": element} if element else {}
    width = ELEMENT_BYTES.get(element)
    if width and row["size_bytes"] is not None and row["size_bytes"] % width == 0:
        args["count"] = row["size_bytes"] // width
    if row["correlation"] is not None:
        args["connection_id"] = row["correlation"]
    return args
