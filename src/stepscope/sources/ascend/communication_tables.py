"""`transports` and `links` from the flat frames that both export formats give."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import polars as pl

from stepscope.sources.ascend.groups import Groups, read_call_name
from stepscope.sources.base import Sink
from stepscope.sources.csv_files.values import whole
from stepscope.tables import LINKS, TRANSPORTS

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
    if used.is_empty():
        return used
    _check_rates(used.unique(call, maintain_order=True), path, sink)
    sums = used.group_by(call).agg(pl.first("size_mb"), parts=parts.sum(), known=pl.col("packet_mb").count())
    off = (pl.col("parts") - pl.col("size_mb")).abs() > _TOLERANCE * pl.col("size_mb")
    problem = "recorded transit sizes differ from the sum of their packets"
    _report(sums.filter(pl.col("known") > 0, off), problem, path, sink)
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
    is_total = pl.col("class").str.ends_with("-total")
    wanted = is_total | pl.col("name").is_not_null()
    rows = matrix.filter(wanted, pl.col("size_mb").is_not_null(), pl.col("time_ms").is_not_null()).select(
        "step",
        "group",
        "transport",
        operation=pl.col("class").replace_strict(operations, default=None, return_dtype=pl.String),
        name=pl.when(~is_total).then("name"),
        size_bytes=whole(pl.col("size_mb") * 1e6),
        duration_ns=whole(pl.col("time_ms") * 1e6),
        **_ranks_of(["source", "destination"], groups),
    )
    placed = rows.drop_nulls(["source", "destination"])
    if lost := rows.height - placed.height:
        remedy = "Keep profiler_metadata.json with the profile: it lists the members of each group."
        sink.issue("warning", path, "links of groups with unknown members are left out", remedy, lost=lost)
    key = ["step", "group", "operation", "name", "source", "destination"]
    ordered = placed.sort(key, maintain_order=True)
    one, other = (ends.slice(1) == ends.slice(0, max(len(ends) - 1, 0)) for ends in ordered[key[-2:]].get_columns())
    if (one & other).any():  # nearly never; to look for them by the whole key takes as long as to sort
        ordered = ordered.unique(key, keep="first", maintain_order=True)
    return LINKS.shaped(ordered)


def _ranks_of(ends: Sequence[str], groups: Groups) -> dict[str, pl.Expr]:
    """The global ranks that stand at places (`ends`) in the groups of links; null for what is none.

    The members of all groups stand in one column: a list of them for each row would be as large as the group times the
    number of links.
    """
    members = {key: ranks for key in sorted(groups.names) if (ranks := groups.members[key])}
    every = pl.lit(pl.Series([rank for ranks in members.values() for rank in ranks], dtype=pl.Int32))
    sizes = {key: len(ranks) for key, ranks in members.items()}
    firsts = dict(zip(sizes, accumulate(sizes.values(), initial=0), strict=False))
    first, size = (
        pl.col("group").replace_strict(values, default=None, return_dtype=pl.Int64) for values in (firsts, sizes)
    )
    return {end: every.gather(pl.when(pl.col(end) >= 0, pl.col(end) < size).then(first + pl.col(end))) for end in ends}


def _check_rates(frame: pl.DataFrame, path: Path, sink: Sink) -> None:
    rate = pl.col("size_mb") / pl.col("time_ms")
    off = (pl.col("bandwidth") - rate).abs() > _TOLERANCE * rate
    differing = frame.filter(pl.col("time_ms") > 0, off, pl.col("size_mb") > 0)
    _report(differing, "recorded bandwidths differ from size divided by time", path, sink)


def _report(differing: pl.DataFrame, problem: str, path: Path, sink: Sink) -> None:
    if count := differing.height:
        problem = f"{problem} by more than {_TOLERANCE:.0%} in {count} places"
        sink.issue("note", path, problem, "Nothing to do: rates are computed from sizes and times.")
