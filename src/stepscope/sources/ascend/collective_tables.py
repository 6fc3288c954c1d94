"""`collectives`: device calls joined with the communication analysis."""

from __future__ import annotations

import polars as pl

from stepscope.sources.ascend.groups import Groups, read_call_name
from stepscope.sources.csv_files.values import whole
from stepscope.tables import COLLECTIVES
from stepscope.tables.base import frame_of
from stepscope.tables.communication import IN_PARTS, WHOLE

ELEMENT_BYTES = {
    **dict.fromkeys(("INT8", "UINT8"), 1),
    **dict.fromkeys(("INT16", "UINT16", "FP16", "BFP16"), 2),
    **dict.fromkeys(("INT32", "UINT32", "FP32"), 4),
    **dict.fromkeys(("INT64", "UINT64", "FP64"), 8),
    "INT128": 16,
}
"""Size of an element by its recorded type."""
PARTS_OF_SDMA = ("HCCS", "PCIE", "SIO")
NO_TYPE = ("RESERVED", "N/A", "INVALID_TYPE")
_PAYLOAD = {
    "size_bytes": pl.col("count").cast(pl.Int64, strict=False)
    * pl.col("element_type").replace_strict(ELEMENT_BYTES, default=None, return_dtype=pl.Int64),
    "element_type": pl.when(~pl.col("element_type").is_in(NO_TYPE)).then("element_type"),
}
_OWN_PART = ~pl.col("transport").is_in(PARTS_OF_SDMA)
_BETWEEN_TWO = pl.col("operation").is_in(["send", "recv", "send_recv"])


def with_payload(frame: pl.DataFrame) -> pl.DataFrame:
    """Turn `count` and `element_type` into `size_bytes`; null if either is unknown."""
    return frame.with_columns(**_PAYLOAD)


def described_calls(
    communication: pl.DataFrame, calls: pl.DataFrame, packets: pl.DataFrame, groups: Groups
) -> pl.DataFrame:
    """Calls of the device joined with the communication analysis, in order of start.

    Args:
        communication: Calls as the device ran them.
        calls: Calls as the communication analysis splits them; alone they still make rows.
        packets: Transport packets; their sizes are used if a call's payload is not recorded.
        groups: Members by key.

    Returns:
        Columns of both, with `start_ns`, `duration_ns`, `group`, `operation` and number `collective`; `step` as the
        device's row states it, `step_analysed` as the analysis does, and `on_device` if there is a device's row.
    """
    names = {name: read_call_name(name) for name in [*communication["name"], *calls["name"]] if name is not None}
    facts = frame_of(
        [
            pl.Series("name", [*names], dtype=pl.String),
            pl.Series("operation", [call.operation for call in names.values()], dtype=pl.String),
            pl.Series("numbered", [call.sequence for call in names.values()], dtype=pl.Int64),
            pl.Series("tagged", [call.tag and groups.of_tag(call.tag) for call in names.values()], dtype=pl.String),
        ]
    )
    # A name occurs again only when a communicator is made anew, so the n-th is matched with the n-th.
    nth = pl.int_range(pl.len()).over("name")
    analysed = calls.sort("start_us").with_columns(nth=nth)
    rows = (
        communication.sort("start_ns", "name")
        .with_columns(nth=nth)
        .join(analysed, on=["name", "nth"], how="full", coalesce=True, suffix="_analysed")
        .join(facts, on="name", how="left")
        .join(_moved(packets), on=["name", "step_analysed"], how="left", nulls_equal=True)
        .with_columns(
            group=pl.coalesce("group", "group_analysed", "tagged"),
            on_device=pl.col("start_ns").is_not_null(),
            start_ns=pl.coalesce("start_ns", whole(pl.col("start_us") * 1000)),
            duration_ns=pl.coalesce("duration_ns", whole(pl.col("elapse_ms") * 1e6)),
        )
        .drop_nulls(["start_ns", "duration_ns"])
        .sort("start_ns", "name")
        .with_row_index("collective")
    )
    groups.mention(rows["group"])
    return rows


def collectives(rows: pl.DataFrame, steps: pl.DataFrame, groups: Groups, *, on_host: bool = False) -> pl.DataFrame:
    """Rows of `collectives`.

    Args:
        rows: `described_calls`.
        steps: The step of each call on the device: `name`, `start_ns`, `kernel_step`.
        groups: Members by key.
        on_host: The rank has no device, and its host communicated.
    """
    sizes = {key: len(members) for key, members in groups.members.items() if members}
    known = rows.join(steps.unique(["name", "start_ns"]), on=["name", "start_ns"], how="left", maintain_order="left")
    size = pl.col("group").replace_strict(sizes, default=None, return_dtype=pl.Int32)
    return COLLECTIVES.shaped(known.select(*_AS_DESCRIBED, group_size=size, on_device=not on_host))


_AS_DESCRIBED = (
    pl.col(
        "collective",
        "group",
        "operation",
        "name",
        "element_type",
        "start_ns",
        "duration_ns",
        "correlation",
        "algorithm",
        "relayed",
        "retried",
    ),
    pl.coalesce("step", pl.when("on_device").then("kernel_step"), "step_analysed").alias("step"),
    pl.coalesce("numbered", pl.int_range(pl.len()).over("group")).alias("sequence"),
    pl.coalesce("size_bytes", "moved_bytes").alias("size_bytes"),
    # the count of elements is that which a rank passes; what it is of differs by operation
    pl.when(~pl.col("operation").is_in(IN_PARTS)).then(pl.lit(WHOLE)).alias("size_of"),
    whole(pl.col("wait_ms") * 1e6).alias("wait_ns"),
    whole(pl.col("transit_ms") * 1e6).alias("transmit_ns"),
    whole(pl.col("synchronization_ms") * 1e6).alias("synchronization_ns"),
)
"""Columns of `collectives` from those of `described_calls` and the steps."""


def with_peers(rows: pl.DataFrame, groups: Groups, rank: int | None) -> pl.DataFrame:
    """Name the other side of point-to-point calls in groups of two; in larger ones it is not recorded."""
    others = {
        key: next(other for other in members if other != rank)
        for key, members in groups.members.items()
        if rank is not None and members and len(set(members)) == 2 and rank in members
    }
    if not others:
        return rows
    peer = pl.col("group").replace_strict(others, default=None, return_dtype=pl.Int32)
    return rows.with_columns(peer=pl.when(_BETWEEN_TWO).then(peer))


def _moved(packets: pl.DataFrame) -> pl.DataFrame:
    """Bytes of a call over all transports but those that are parts of SDMA."""
    whole_calls = packets.unique(["step", "group", "name", "transport"], keep="first", maintain_order=True)
    return (
        whole_calls.filter(_OWN_PART)
        .group_by("name", step_analysed="step")
        .agg(moved_bytes=whole(pl.sum("size_mb") * 1e6))
    )
