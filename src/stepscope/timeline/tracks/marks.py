"""What MindSpore marks on the host, by module and thread."""

from __future__ import annotations

import polars as pl

from stepscope.text_columns import filled_in
from stepscope.timeline.tracks.base import Family, Part


def _events(part: Part) -> pl.LazyFrame | None:
    """The rows of `host_events`; those without a duration are points."""
    if not part.has("host_events"):
        return None
    name = pl.concat_str("event", "stage", separator=" ", ignore_nulls=True)
    return part.table("host_events").select(
        "rank", "start_ns", "duration_ns", "module", "event", "stage", "custom", "step", "level",
        "memory_start_bytes", "memory_end_bytes",
        track=pl.coalesce(filled_in("{} (thread {})", "module", "thread"), pl.col("module")),
        order=pl.lit(0, pl.Int64),
        name=pl.when(name == "").then("module").otherwise(name),
        category=pl.lit("host_event"),
    )  # fmt: skip


FAMILY = Family(
    "host_events",
    "Host events",
    "What the framework marks of its own work on the host, by module and thread, with the memory of the process.",
    "detail",
    _events,
    paged=("host_events",),
    tables=("host_events",),
    priority=5,
)
