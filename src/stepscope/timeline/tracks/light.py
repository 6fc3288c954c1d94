"""Ranges of light tracing as they are stored: steps, host threads, groups and device streams, a track each."""

from __future__ import annotations

import polars as pl

from stepscope.text_columns import filled_in
from stepscope.timeline.tracks.base import AS_STORED, Family, Part
from stepscope.timeline.tracks.communication import group_names, group_title
from stepscope.timeline.tracks.flows import numbered

NO_END = " (no end recorded)"
"""How the name of a range ends whose end was not recorded; it is a point where it began."""
ON_DEVICE = "device_"
"""How the category of a range on the device begins, before its kind."""
_CALL = ("group", "group_name", "ranks", "size_bytes", "element_type", "peer", "is_async")
_STEPS, _THREAD, _GROUP, _DEVICE = range(4)
"""What a track is for, in the order in which they are shown."""
_PLACE = ("rank", "process", "lane", "device", "stream", "kind_there", "thread_there", "group_there")
_TO_DEVICE = 3
"""Kind of the arrows from ranges on the host to the same ones on the device."""
_BITS = 32


def _ranges(part: Part) -> pl.LazyFrame | None:
    """All stored ranges, and those on the device as ranges of their own."""
    if not part.has(AS_STORED):
        return None
    rows = _placed(part.table(AS_STORED)).sort("start_ns", maintain_order=True)
    rows = rows.join(group_names(part), on=["rank", "group"], how="left", maintain_order="left")
    rows = rows.join(part.once(_titles).lazy(), on=_PLACE, how="left", nulls_equal=True, maintain_order="left")
    process = pl.col("process").cast(pl.Int64, strict=False).fill_null(0)
    arrow = numbered(process * (1 << _BITS) + pl.col("range"), _TO_DEVICE)
    on_device, is_over = pl.col("on_device"), pl.col("duration_ns").is_not_null()
    return rows.select(
        "rank", "track", "order", "start_ns", "duration_ns",
        pl.when(is_over).then("name").otherwise(pl.concat_str("name", pl.lit(NO_END))).alias("name"),
        pl.when(on_device).then(pl.concat_str(pl.lit(ON_DEVICE), "kind")).otherwise("kind").alias("category"),
        "step", *_CALL,
        pl.coalesce("group_size", "members").alias("group_size"),
        pl.when(on_device).then("delay_ns").alias("after_host_start_ns"),
        pl.when(~on_device & pl.col("delay_ns").is_not_null()).then(arrow).alias("flow_out_light"),
        pl.when(on_device).then(arrow).alias("flow_in_light"),
    )  # fmt: skip


def _placed(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The same rows with what says on which track they are (`_PLACE`)."""
    kind = pl.col("kind")
    of_host = pl.when(kind == "step").then(_STEPS).when(kind == "communication").then(_GROUP).otherwise(_THREAD)
    lane = pl.when("on_device").then(_DEVICE).otherwise(of_host).cast(pl.Int32)
    special = pl.when(kind.is_in(["step", "communication"])).then(kind)
    return rows.with_columns(lane=lane, kind_there=pl.when("on_device").then(special)).with_columns(
        thread_there=pl.when(pl.col("lane") == _THREAD).then("thread"),
        group_there=pl.when(kind == "communication").then("group"),
    )


def _titles(part: Part) -> pl.DataFrame:
    """What each track is called: `_PLACE`, `track`, `order`."""
    places = _placed(part.table(AS_STORED)).select(_PLACE).unique().collect()
    names = part.table("groups").select("rank", "name", group_there="group").collect()
    known = places.join(
        names.unique(["rank", "group_there"], keep="first"), on=["rank", "group_there"], how="left", nulls_equal=True
    ).sort(_PLACE, nulls_last=True)
    device = pl.concat_str(
        pl.coalesce(filled_in("Device {}", "device"), pl.lit("Device")),
        pl.coalesce(filled_in(" stream {}", "stream"), pl.lit("")),
    )
    group, lane = group_title("name", "group_there"), pl.col("lane")
    title = (
        pl.when(lane == _STEPS)
        .then(pl.lit("Steps"))
        .when(lane == _THREAD)
        .then(filled_in("Thread {}", "thread_there"))
        .when(lane == _GROUP)
        .then(group)
        .when(pl.col("kind_there") == "step")
        .then(pl.concat_str(device, pl.lit(": steps")))
        .when(pl.col("kind_there") == "communication")
        .then(pl.concat_str(device, pl.lit(": "), group))
        .otherwise(device)
    )
    several = pl.col("process").n_unique().over("rank") > 1
    return known.select(
        *_PLACE,
        track=pl.when(several).then(pl.concat_str(pl.lit("Process "), "process", pl.lit(": "), title)).otherwise(title),
        order=pl.int_range(pl.len(), dtype=pl.Int64).over("rank"),
    )


FAMILY = Family(
    "light",
    "Light trace",
    "Ranges of light tracing as they are stored: steps, host threads, calls by group, and the same on the device, to "
    "which arrows lead; those without an end are points.",
    "detail",
    _ranges,
    paged=(AS_STORED,),
    tables=(AS_STORED,),
    priority=2,
)
