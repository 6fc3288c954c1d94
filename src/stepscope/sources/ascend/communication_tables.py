"""`transports` and `links` from the flat frames that both export formats give."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from stepscope.sources.ascend.groups import Groups, read_call_name
from stepscope.sources.csv_files.values import whole
from stepscope.tables import LINKS, TRANSPORTS

if TYPE_CHECKING:
    from stepscope.sources.base import Sink

_TOLERANCE = 0.01


def of_calls(parts: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Packets or links with the steps of their calls (rows of `collectives`), if they name them (`collective`)."""
    if "collective" not in parts.columns:
        return parts
    known = calls.select("collective", call_step=pl.col("step").cast(pl.Int64))
    joined = parts.join(known, on="collective", how="left", maintain_order="left")
    return joined.with_columns(step=pl.coalesce("call_step", "step")).drop("call_step", "collective")


def transports(packets: pl.DataFrame, path: Path, sink: Sink) -> pl.DataFrame:
    """Rows of `transports`: one per packet size. A single packet size has the call's exact size and time."""
    call = ["step", "group", "name", "transport"]
    single = (pl.len().over(call) == 1) | pl.col("packet_mb").is_null()
    parts = pl.col("packet_mb") * pl.col("packets")
    used = packets.filter((pl.col("size_mb").fill_null(0) != 0) | (pl.col("time_ms").fill_null(0) != 0))
    _check_rates(used.unique(call, maintain_order=True), path, sink)
    sums = used.group_by(call).agg(pl.first("size_mb"), parts=parts.sum(), known=pl.col("packet_mb").count())
    _report(
        sums.filter(
            (pl.col("known") > 0) & ((pl.col("parts") - pl.col("size_mb")).abs() > _TOLERANCE * pl.col("size_mb"))
        ).height,
        "recorded transit sizes differ from the sum of their packets",
        path,
        sink,
    )
    rows = used.select(
        *call,
        size_bytes=whole(pl.when(single).then("size_mb").otherwise(parts) * 1e6),
        duration_ns=whole(pl.when(single).then("time_ms").otherwise("packets_ms") * 1e6),
        packet_bytes=whole(pl.col("packet_mb") * 1e6),
        packets=whole(pl.col("packets")),
    )
    return TRANSPORTS.shaped(rows.sort(*call, "packet_bytes", nulls_last=True))


def links(matrix: pl.DataFrame, groups: Groups, path: Path, sink: Sink) -> pl.DataFrame:
    """Rows of `links` between global ranks; totals have no name, single calls have theirs, each once."""
    _check_rates(matrix, path, sink)
    kinds = matrix["class"].unique().drop_nulls().to_list()
    operations = {kind: read_call_name(kind.rpartition("-")[0] or kind).operation for kind in kinds}
    members = (
        groups.frame()
        .drop_nulls("members")
        .select("group", rank=pl.col("members"), index=pl.int_ranges(pl.col("members").list.len()))
        .explode("rank", "index")
    )
    known = (
        matrix.with_columns(
            operation=pl.col("class").replace_strict(operations, default=None, return_dtype=pl.String),
            name=pl.when(pl.col("class").str.ends_with("-total")).then(None).otherwise("name"),
            total=pl.col("class").str.ends_with("-total"),
        )
        .join(members.rename({"rank": "from", "index": "source"}), on=["group", "source"], how="left")
        .join(members.rename({"rank": "to", "index": "destination"}), on=["group", "destination"], how="left")
    )
    rows = known.filter(pl.col("total") | pl.col("name").is_not_null()).drop_nulls(["size_mb", "time_ms"])
    placed = rows.drop_nulls(["from", "to"])
    if lost := rows.height - placed.height:
        sink.issue(
            "warning",
            path,
            "links of groups with unknown members are left out",
            "Keep profiler_metadata.json with the profile: it lists the members of each group.",
            lost=lost,
        )
    key = ["step", "group", "operation", "name", "source", "destination"]
    rows = placed.select(
        "step",
        "group",
        "operation",
        "name",
        "transport",
        source="from",
        destination="to",
        size_bytes=whole(pl.col("size_mb") * 1e6),
        duration_ns=whole(pl.col("time_ms") * 1e6),
    )
    return LINKS.shaped(rows.unique(key, keep="first", maintain_order=True).sort(key))


def _check_rates(frame: pl.DataFrame, path: Path, sink: Sink) -> None:
    rate = pl.col("size_mb") / pl.col("time_ms")
    off = (pl.col("bandwidth") - rate).abs() > _TOLERANCE * rate
    _report(
        frame.filter((pl.col("time_ms") > 0) & off & (pl.col("size_mb") > 0)).height,
        "recorded bandwidths differ from size divided by time",
        path,
        sink,
    )


def _report(count: int, problem: str, path: Path, sink: Sink) -> None:
    if count:
        sink.issue(
            "note",
            path,
            f"{problem} by more than {_TOLERANCE:.0%} in {count} places",
            "Nothing to do: rates are computed from sizes and times.",
        )
