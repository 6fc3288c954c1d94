"""The last calls between ranks that a flight recorder kept, a track a group: what each rank waits in."""

from __future__ import annotations

import polars as pl

from stepscope.text_columns import filled_in
from stepscope.timeline.tracks.base import Family, Part

ARGUMENTS = (
    "operation", "sequence", "part", "state", "peer", "input_shapes", "output_shapes", "element_type", "size_bytes",
    "backend", "record", "is_done",
)  # fmt: skip


def _recorded(part: Part) -> pl.LazyFrame | None:
    """Calls from when they were made until they were seen to be over; those that are not over, or of which that moment
    is not recorded, are points."""
    if not part.has("recorded_calls"):
        return None
    calls = part.table("recorded_calls").filter(pl.col("created_ns").is_not_null())
    if part.has("stacks"):
        stacks = part.table("stacks").select("rank", "stack", call_stack="text")
        calls = calls.join(stacks, on=["rank", "stack"], how="left", maintain_order="left")
    return calls.select(
        "rank",
        *ARGUMENTS,
        track=filled_in("Group {}", pl.coalesce("group_name", "group")),
        order=pl.lit(0, pl.Int64),
        start_ns="created_ns",
        duration_ns=pl.col("completed_ns") - pl.col("created_ns"),
        name=pl.when("is_done").then("name").otherwise(pl.concat_str("name", pl.lit(" (not done)"))),
        category=pl.lit("recorded_call"),
        started_after_ns=pl.col("started_ns") - pl.col("created_ns"),
        **({"call_stack": pl.col("call_stack")} if part.has("stacks") else {}),
    )


FAMILY = Family(
    "recorded_calls",
    "Recorded calls",
    "The last calls between ranks in dumps of a flight recorder, by process group, with the code that made them; those "
    "that are not over are points.",
    "detail",
    _recorded,
    tables=("recorded_calls",),
    priority=2,
)
