"""Sends and receives as calls of their two ranks: the n-th from one to another is the n-th that this one receives."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.call_positions import CALL
from stepscope.text_columns import filled_in

_TRANSFER = pl.col("operation").is_in(["send", "recv"])


def as_pairs(calls: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Number sends and receives by sender and receiver, in groups that name the other side of each.

    A group may name it by its place in the group: then a rank is its own other side, or places are no members. Where
    it is not named, they keep their numbers, apart from those of the other calls of their group.

    Args:
        calls: `rank`, `group`, `sequence`, `operation`, `peer`, `start_ns`.
        groups: The table of that name.

    Returns:
        The calls in their order; of such groups `group` is that of the pair and its direction, `within` the former one
        and `sequence` counts from 0. `within` is null for all others.
    """
    transfer = _TRANSFER & pl.col("group").is_not_null()
    named = pl.col("peer").is_not_null().all().over("group")
    rows = with_other(calls.with_row_index("row").filter(transfer).filter(named), groups)
    sends = pl.col("operation") == "send"
    ends = pl.when(sends).then(filled_in("{}>{}", "rank", "other")).otherwise(filled_in("{}>{}", "other", "rank"))
    paired = rows.with_columns(pair=filled_in("{} {}", "group", ends)).sort("start_ns", "row")
    numbers = paired.select(
        "row", "pair", position=pl.int_range(pl.len(), dtype=pl.Int64).over("pair", "rank"), within="group"
    )
    unnamed = calls.with_row_index("row").filter(_TRANSFER.any().over("group") & ~_TRANSFER.all().over("group"))
    apart = unnamed.filter(transfer).join(numbers, on="row", how="anti")
    more = apart.select("row", filled_in("{} ?", "group").alias("pair"), position="sequence", within="group")
    numbers = pl.concat([numbers, more])
    joined = calls.with_row_index("row").join(numbers, on="row", how="left", maintain_order="left")
    return joined.with_columns(group=pl.coalesce("pair", "group"), sequence=pl.coalesce("position", "sequence")).drop(
        "row", "pair", "position"
    )


def with_other(calls: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Calls with the rank of the other side (`other`), and the `members` of their group.

    Args:
        calls: `rank`, `group`, `peer`: all calls of each group.
        groups: The table of that name.
    """
    known = groups.drop_nulls("members").unique("group", keep="first", maintain_order=True).select("group", "members")
    rows = calls.join(known, on="group", how="left", maintain_order="left").with_columns(
        members=pl.coalesce("members", pl.col("rank").unique().sort().over("group", mapping_strategy="join"))
    )
    is_place = ((pl.col("peer") == pl.col("rank")) | ~pl.col("members").list.contains(pl.col("peer"))).any()
    in_range = (pl.col("peer") < pl.col("members").list.len()).all()
    by_place = (is_place & in_range).over("group")
    other = pl.when(by_place).then(pl.col("members").list.get(pl.col("peer"), null_on_oob=True)).otherwise("peer")
    return rows.with_columns(other=other)


def in_groups(calls: pl.DataFrame) -> pl.DataFrame:
    """Calls of `as_pairs` with their former groups, numbered behind the other calls of the group, in order of time."""
    first = pl.when(pl.col("within").is_not_null()).then(pl.col("start_ns").min().over(CALL))
    rest = pl.when(pl.col("within").is_null()).then(pl.col("sequence"))
    group = pl.coalesce("within", "group")
    found = calls.with_columns(first=first, rest=rest, whole=group)
    order = pl.struct("first", "group", "sequence").rank("dense").over("whole", "within")
    behind = pl.col("rest").max().over("whole").fill_null(-1)
    sequence = pl.when(pl.col("within").is_not_null()).then(order.cast(pl.Int64) + behind).otherwise("sequence")
    return found.with_columns(sequence=sequence, group="whole").drop("first", "rest", "whole", "within")
