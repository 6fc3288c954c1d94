"""Communication in the classic timeline: each call once, under the name that the format gives its operation."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.export.classic.step_trace import CALL_NAME, OPERATION
from stepscope.export.classic.timeline_layout import COMMUNICATION, Layout, Thread, event
from stepscope.export.rank_export import RankExport
from stepscope.text_columns import filled_in

_TIME = ["start_ns", "duration_ns"]
_SCHEMA = {
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "name": pl.String,
    "type": pl.String,
    "thread": pl.String,
    "title": pl.String,
    "full_name": pl.String,
    "size_bytes": pl.Int64,
}


def calls_of(export: RankExport, layout: Layout) -> pl.DataFrame:
    """The calls of a rank, as `_SCHEMA`.

    The tracks of `stepscope timeline` are groups; the format has a thread a stream on Ascend devices, and calls without
    their group. There kernels that communicate stand with the calls, as `full_name`, and not among the operators.
    """
    calls = export.rows("collectives").sort("start_ns", maintain_order=True)
    calls = calls.with_columns(name=CALL_NAME, type=OPERATION)
    group = pl.col("group").fill_null("None")
    if not layout.on_ascend:  # by group, as readers take threads that are numbers for streams
        return _shaped(calls.with_columns(thread=group, title=filled_in("Group {}", group)))
    groups = calls.select(pl.col("group").unique(maintain_order=True)).with_row_index("place")
    calls = calls.join(groups, on="group", how="left", nulls_equal=True, maintain_order="left")
    kernels = export.lazy("kernels").filter(pl.col("kind") == "communication")
    work = kernels.select(*_TIME, "stream", full_name="name", own_type=pl.coalesce("type", "name")).collect()
    named = work.unique("start_ns", keep="first", maintain_order=True)
    calls = calls.join(named.select("start_ns", "full_name"), on="start_ns", how="left", maintain_order="left")
    others = work.join(calls.select("start_ns"), on="start_ns", how="anti", maintain_order="left")
    others = others.with_columns(name=pl.col("full_name").str.split("/").list.last(), type="own_type")
    rows = pl.concat([calls, others], how="diagonal").sort("start_ns", maintain_order=True)
    stream = filled_in("Stream {}", "stream")
    return _shaped(
        rows.with_columns(
            thread=pl.coalesce("stream", "place", pl.lit(0)), title=pl.coalesce(stream, filled_in("Group {}", group))
        )
    )


def _shaped(rows: pl.DataFrame) -> pl.DataFrame:
    known = (pl.col(name) if name in rows.columns else pl.lit(None).alias(name) for name in _SCHEMA)
    return rows.select(known).cast(_SCHEMA)  # type: ignore[arg-type]


def call_threads(calls: pl.DataFrame, layout: Layout) -> list[Thread]:
    """The threads of `calls_of`."""
    named = calls.unique("thread", keep="first", maintain_order=True).select("thread", "title")
    return [
        (COMMUNICATION, int(thread) if layout.on_ascend else thread, title, place)
        for place, (thread, title) in enumerate(named.iter_rows())
    ]


def call_events(calls: pl.DataFrame, layout: Layout) -> Iterator[str]:
    """The events of `calls_of`."""
    for start, ns, name, kind, thread, _, full, size in calls.iter_rows():
        tid = int(thread) if layout.on_ascend else thread
        yield event(name, COMMUNICATION, tid, start, ns, args={"type": kind, "fullname": full, "size_bytes": size})
