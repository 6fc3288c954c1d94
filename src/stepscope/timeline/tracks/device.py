"""Work of the device, a track a stream: kernels, memory operations, communication, and what the device itself marks."""

from __future__ import annotations

import polars as pl

from stepscope.text_columns import filled_in
from stepscope.timeline.tracks.base import Family, Part
from stepscope.timeline.tracks.flows import launch_flow

CATEGORIES = {"compute": "kernel", "memory": "memory", "communication": "communication"}
"""Category of a slice, by the kind of the kernel."""

ARGUMENTS = (
    "step", "type", "core", "size_bytes", "direction", "input_shapes", "input_types", "output_shapes", "block_dim",
    "grid", "block", "occupancy_ratio", "wait_ns", "micro_batch", "model_chunk", "correlation",
)  # fmt: skip


def _device(part: Part) -> pl.LazyFrame | None:
    """Rows of `kernels`, which have arguments, where they are all that `slices` has of their category on a stream; and
    all other rows of `slices` on streams."""
    if not part.has("kernels") and not part.has("slices"):
        return None
    by_kernels, streams = part.once(_sources)
    kernels = part.table("kernels").with_columns(
        category=pl.col("kind").replace_strict(CATEGORIES, default="other", return_dtype=pl.String)
    )
    kernels = kernels.join(by_kernels.lazy(), on=["rank", "category"], how="semi", maintain_order="left")
    slices = part.table("slices").filter(pl.col("stream").is_not_null())
    slices = slices.join(by_kernels.lazy(), on=["rank", "category"], how="anti", maintain_order="left")
    columns = ("rank", "start_ns", "duration_ns", "name", "category", "device", "stream")
    rows = pl.concat(
        [
            kernels.select(*columns, *ARGUMENTS, "launch_start_ns", table=pl.lit("kernels")),
            slices.select(*columns, "step", "correlation", table=pl.lit("slices")),
        ],
        how="diagonal",
    )
    # Viewers draw arrows from the earlier to the later range, or not at all: none would be right where the clocks of
    # host and device differ so much that work begins before its launch.
    follows = (pl.col("start_ns") >= pl.col("launch_start_ns")).fill_null(True)
    follows = follows & (pl.col("category") != "communication_task")  # their call has the arrow
    rows = rows.sort("start_ns", maintain_order=True).with_columns(flow_in_launch=launch_flow(follows))
    several = streams.group_by("rank").agg(several=pl.col("device").n_unique() > 1)
    stream = pl.coalesce(filled_in("Stream {}", pl.col("stream")), pl.lit("No stream recorded"))
    device = pl.coalesce(filled_in("Device {} ", pl.col("device")), pl.lit(""))
    order = pl.col("device").fill_null(0).clip(0, 63).cast(pl.Int64) * 20_000 + pl.col("stream").fill_null(0).clip(
        0, 19_999
    )
    return (
        rows.join(several.lazy(), on="rank", how="left", maintain_order="left")
        .with_columns(
            track=pl.when(pl.col("several")).then(pl.concat_str(device, stream)).otherwise(stream), order=order
        )
        .drop("several", "device", "stream", "launch_start_ns")
    )


def _sources(part: Part) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`rank` and `category` of what is taken from `kernels`; `rank` and `device` of all device work."""
    kernels = (
        part.table("kernels")
        .select(
            "rank",
            "device",
            category=pl.col("kind").replace_strict(CATEGORIES, default="other", return_dtype=pl.String),
        )
        .group_by("rank", "device", "category")
        .agg(kernels=pl.len())
        .collect()
    )
    slices = (
        part.table("slices")
        .group_by("rank", "category", "device")
        .agg(slices=pl.len(), on_stream=pl.col("stream").is_not_null().sum())
        .collect()
    )
    devices = pl.concat(
        [kernels.select("rank", "device"), slices.filter(pl.col("on_stream") > 0).select("rank", "device")]
    ).drop_nulls()
    key = ["rank", "category"]
    drawn = slices.group_by(key).agg(pl.col("slices", "on_stream").sum())
    both = (
        kernels.group_by(key)
        .agg(pl.col("kernels").sum())
        .join(drawn, on=key, how="left", maintain_order="left")
        .fill_null(0)
    )
    # Calls that `slices` has without a stream are shown with communication, as the source shows them.
    same = pl.when(pl.col("slices") > 0).then(pl.col("on_stream") == pl.col("kernels")).otherwise(True)
    return both.filter(same).select("rank", "category"), devices


FAMILY = Family(
    "device",
    "Device",
    "Kernels, memory operations and communication on the device, by stream, with shapes, bytes and the host call that "
    "launched them.",
    "detail",
    _device,
    paged=("kernels", "slices"),
    tables=("kernels", "slices"),
    priority=3,
)
