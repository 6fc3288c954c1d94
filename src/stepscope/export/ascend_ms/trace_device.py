"""The device in trace_view.json: its work by stream, and the arrows from the launches of it.

These are `kernels` and `slices` and not the tracks of `stepscope timeline`: the format has the numbers of streams, and
puts calls of communication elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analysis.methods.launch_owners import owners
from stepscope.export.ascend_ms.trace_calls import CallTracks
from stepscope.export.ascend_ms.trace_host import OF_DEVICE
from stepscope.export.ascend_ms.trace_tracks import DEVICE, RUNTIME, Tracks, in_order, span
from stepscope.export.rank_export import RankExport
from stepscope.sources.ascend.kernel_tables import LAUNCH_LAYERS
from stepscope.sources.ascend.trace_layout import STEP_TRACE
from stepscope.sources.ascend.trace_view import COMPUTE_CORES, MEMORY_TASK
from stepscope.timeline.writing.events import arrow_end

_COPY, _SET, _OTHER = "MEMCPY_ASYNC", "MEMSET_ASYNC", "OTHER"
_LAYER = pl.coalesce(
    *(pl.when(pl.col("name").str.starts_with(word)).then(at) for at, word in enumerate(LAUNCH_LAYERS)),
    len(LAUNCH_LAYERS),
)


def kernel_events(export: RankExport, tracks: Tracks) -> Iterator[str]:
    """Kernels and memory operations by stream, without calls of communication."""
    kind = str(export.facts.get("device_kind") or "device").upper()
    task = (
        pl.when(pl.col("kind") != "memory")
        .then(pl.col("core").fill_null(f"KERNEL_{kind}"))
        .when(pl.col("name").str.contains("(?i)memset"))
        .then(pl.lit(_SET))
        .when(pl.col("name").str.contains(f"^[A-Z_]*(?:{MEMORY_TASK})[A-Z_]*$"))
        .then("name")
        .otherwise(pl.lit(_COPY))
    )
    rows = in_order(_work(export).filter(~pl.col("is_call"))).select(
        "start_ns", "duration_ns", "name", "stream", "correlation", "size_bytes", "direction", task.alias("task")
    )
    for start, duration, name, stream, correlation, size, direction, task_type in rows.iter_rows():
        args = {"Task Type": task_type, "Stream Id": stream, "connection_id": correlation, "size(B)": size}
        yield span(name, tracks.stream(stream), start, duration, {**args, "operation": direction})
    yield from _other_events(export, tracks)


def _work(export: RankExport) -> pl.DataFrame:
    """`kernels` with `is_call`: whether it is a whole call of communication, which `collectives` has as well."""
    calls = export.lazy("collectives").select("start_ns").collect()["start_ns"]
    is_call = (pl.col("kind") == "communication") & pl.col("start_ns").is_in(calls.implode())
    return export.rows("kernels").with_columns(is_call=is_call)


def _other_events(export: RankExport, tracks: Tracks) -> Iterator[str]:
    """What else ran on the device, such as waits for events; and marks of steps, which have a track of their own."""
    rows = export.rows("slices").filter(pl.col("category").is_in(["other", "device_annotation"]), OF_DEVICE)
    is_misread = pl.col("name").is_in(COMPUTE_CORES) | pl.col("name").str.contains(f"^KERNEL_|{MEMORY_TASK}")
    rows = in_order(rows).select(
        *("start_ns", "duration_ns", "name", "stream", "correlation"),
        is_mark=pl.col("category") == "device_annotation",
        task=pl.when(~is_misread).then("name").otherwise(pl.lit(_OTHER)),
    )
    for start, duration, name, stream, correlation, is_mark, task in rows.iter_rows():
        title = f"{STEP_TRACE}(Stream {stream})"
        track = tracks.thread(DEVICE, title, title) if is_mark else tracks.stream(stream)
        yield span(name, track, start, duration, {"Task Type": task, "Stream Id": stream, "connection_id": correlation})


def launch_events(export: RankExport, tracks: Tracks, calls: CallTracks) -> Iterator[str]:
    """Arrows to the work of the device: from the operator that asked for it, and from the call that launched it."""
    work = _work(export)
    if work.is_empty():
        return
    slices, operators = export.lazy("slices"), export.lazy("operators")
    owned = owners(work.lazy(), operators, slices).drop("rank")
    began = operators.select("slice", "thread", from_ns="start_ns").collect()
    asked = in_order(work).join(owned, on="kernel", how="inner", maintain_order="left")
    asked = asked.join(began, on="slice", how="inner", maintain_order="left")
    asked = asked.filter(pl.col("start_ns").is_first_distinct())  # the format numbers these arrows by their head
    columns = ("from_ns", "thread", "start_ns", "stream", "is_call")
    for time, thread, start, stream, is_call in asked.select(columns).iter_rows():
        head = calls.track(start) if is_call else tracks.stream(stream)
        yield from _arrow("torch_to_npu", "async_npu", str(start), (tracks.host(thread), time), (head, start))
    launches = (
        slices.filter((pl.col("category") == "runtime") & pl.col("correlation").is_not_null())
        .select("correlation", "thread", from_ns="start_ns", layer=_LAYER)
        .collect()
        .sort("layer", "from_ns", maintain_order=True)
        .unique("correlation", keep="first", maintain_order=True)
    )
    launched = in_order(work).join(launches, on="correlation", how="inner", maintain_order="left")
    launched = launched.filter(pl.col("correlation").is_first_distinct())
    for time, thread, start, stream, is_call, correlation in launched.select(*columns, "correlation").iter_rows():
        head = calls.track(start) if is_call else tracks.stream(stream)
        number = correlation << 32
        tail = (tracks.host(thread, RUNTIME), time)
        yield from _arrow(f"HostToDevice{number}", "HostToDevice", f'"{number}"', tail, (head, start))


def _arrow(
    name: str, category: str, number: str, tail: tuple[tuple[int, int], int], head: tuple[tuple[int, int], int]
) -> Iterator[str]:
    for is_tail, (track, time) in ((True, tail), (False, head)):
        yield arrow_end(name, track, time, number, is_tail=is_tail, category=category, as_text=True)
