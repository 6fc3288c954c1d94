"""Calls of communication of one kind, whose transmission can be compared, and the names of their groups."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import meaning
from stepscope.analysis.methods.call_positions import CALL
from stepscope.analysis.rank_lists import as_rank_list
from stepscope.limits import limit
from stepscope.tables import GROUPS, LINKS, RANKS
from stepscope.tables.base import Column

OF_KIND = (
    meaning("group", "Key of the process group."),
    "group_name",
    Column("ranks", "string", "Recorded members, e.g. `0, 1`."),
    "operation",
    meaning("size_bytes", "Payload; null if not recorded."),
    Column("sent_bytes", "int64", "Bytes sent over links if the payload was not recorded."),
)
"""Columns of answers about calls of a group and kind; `transmit_ns` follows."""

SAME = ["operation", "size_bytes", "sent_class", "members", "hosts"]
"""Columns that make calls comparable; those between hosts take longer than those inside of one."""


@dataclass(frozen=True)
class Limits:
    """Which calls are of one size."""

    alike_factor: float = limit(
        1.05, "between bytes sent that count as equal", "sources report bytes of links in rounded MB"
    )


def matched_calls(arrival: pl.DataFrame) -> pl.DataFrame:
    """The rows of calls that several members of a group were seen in."""
    return arrival.filter((pl.col("members") > 1) & pl.col("group").is_not_null() & ~pl.col("point_to_point"))


def with_groups(rows: pl.DataFrame, calls: pl.DataFrame, groups: pl.LazyFrame | None) -> pl.DataFrame:
    """Rows about groups with the `ranks` and the `group_name` of each.

    Args:
        rows: With `group`.
        calls: `matched_calls`.
        groups: The table.
    """
    members = calls.group_by("group").agg(ranks=as_rank_list(pl.col("rank")))
    return rows.join(members, on="group").join(group_names(groups), on="group", how="left")


def sized_calls(
    members: pl.DataFrame, links: pl.LazyFrame | None, ranks: pl.LazyFrame | None, alike_factor: float
) -> pl.DataFrame:
    """Calls of known size with `transmit_ns` and the number of their `hosts` (null if unknown); `sent_bytes` and its
    class if only links give the size."""
    kind, call = ["operation", "members"], list(CALL)
    hosts = hosts_of(RANKS.or_empty(ranks).collect())
    calls = (
        _with_sent(members, LINKS.or_empty(links))
        .join(hosts, on="rank", how="left", maintain_order="left")
        .with_columns(hosts=_split(call))
        .with_columns(pl.col("size_bytes").fill_null(pl.col("size_bytes").max().over(call)))
        .with_columns(sent_bytes=pl.when(pl.col("size_bytes").is_null()).then("sent_bytes"))
        .group_by(*CALL, "step", "operation", "size_bytes", "members", "hosts")
        .agg(pl.col("transmit_ns").min(), pl.col("sent_bytes").max())
        .filter(pl.col("size_bytes").is_not_null() | (pl.col("sent_bytes") > 0))
        .sort(*kind, "sent_bytes", nulls_last=True)
    )
    further = pl.col("sent_bytes") > alike_factor * pl.col("sent_bytes").shift(1).over(kind)
    return calls.with_columns(sent_class=further.fill_null(value=False).cum_sum().over(kind)).with_columns(
        sent_class=pl.when(pl.col("sent_bytes").is_not_null()).then("sent_class")
    )


def hosts_of(ranks: pl.DataFrame) -> pl.DataFrame:
    """The host of each rank: as recorded; else, if devices are numbered anew from 0 on after the same number of ranks,
    those between are of one host.

    Returns:
        `rank` and `host`; null if unknown.
    """
    each = ranks.select("rank", "host", "device").unique("rank", keep="first", maintain_order=True)
    if each["host"].null_count() == 0:
        return each.select("rank", "host")
    on_host = (each["device"].max() or 0) + 1  # type: ignore[operator]
    in_turn = bool((each["device"] == each["rank"] % on_host).all()) and each["device"].null_count() == 0
    number = (pl.col("rank") // on_host).cast(pl.String)
    return each.select("rank", host=number if in_turn and on_host > 1 else "host")


def _split(call: list[str]) -> pl.Expr:
    """How many members of a call each of its hosts has, most first, e.g. `4 2`; null if hosts are unknown."""
    members = pl.col("rank").n_unique().over([*call, "host"])
    first = pl.col("rank") == pl.col("rank").min().over([*call, "host"])
    counts = members.filter(first).sort(descending=True).cast(pl.String).str.join(" ").over(call)
    return pl.when(pl.col("host").is_not_null().all().over(call)).then(counts)


def _with_sent(members: pl.DataFrame, links: pl.LazyFrame) -> pl.DataFrame:
    """The members' calls with the bytes that each sent over links: as recorded for the call, else for its group."""
    between = links.filter(
        (pl.col("source") != pl.col("destination"))
        & (pl.col("source") == pl.col("rank"))
        & (pl.col("transport").fill_null("") != "LOCAL")
    )
    ways = (
        ("of_call", pl.col("name").is_not_null(), ["rank", "step", "name"]),
        ("of_group", pl.col("name").is_null() & pl.col("group").is_not_null(), ["rank", "step", "group", "operation"]),
    )
    sent = pl.collect_all(
        between.filter(which).group_by(keys).agg(pl.col("size_bytes").sum().alias(name)) for name, which, keys in ways
    )
    with_sent = members
    for (name, _, keys), sums in zip(ways, sent, strict=True):
        with_sent = with_sent.join(sums, on=keys, how="left", nulls_equal=True, maintain_order="left").with_columns(
            pl.col(name) / pl.len().over(keys)  # a step may have several calls of a name or group
        )
    return with_sent.with_columns(sent_bytes=pl.coalesce("of_call", "of_group"))


def group_names(groups: pl.LazyFrame | None) -> pl.DataFrame:
    """The display name of each group: `group`, `group_name`."""
    named = GROUPS.or_empty(groups).filter(pl.col("name").is_not_null()).sort("group", "rank", "name")
    return named.group_by("group", maintain_order=True).agg(group_name=pl.col("name").first()).collect()
