"""Calls between ranks whose spans refer to one another: the members of one call are in the traces of several ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from stepscope.errors import Unavailable
from stepscope.export.otlp.ranges import Ranges
from stepscope.run import Run

MOST_LINKS = 128
"""Links of one span: the default limit of OpenTelemetry's SDKs."""

_CALL = ("group", "call")
_SPAN = ("rank", "kind", "number", "span_step")
SCHEMA = {
    "kind": pl.Int8(),
    "number": pl.Int64(),
    "arrival": pl.Int32(),
    "wait_ns": pl.Int64(),
    "members": pl.Int32(),
    "others": pl.List(
        pl.Struct({"rank": pl.Int32(), "kind": pl.Int8(), "number": pl.Int64(), "span_step": pl.Int32()})
    ),
    "others_lost": pl.UInt32(),
}


def linked_calls(
    run: Run, ranges: Sequence[Ranges], categories: frozenset[str]
) -> tuple[Mapping[int, pl.DataFrame], str]:
    """For each rank its calls that are matched with those of others (see the analysis `arrival`).

    Each member refers to the one that entered the call last, for which the others wait, and that one to all others.

    Args:
        run: The run.
        ranges: Of all its ranks.
        categories: Categories of ranges that become spans.

    Returns:
        By rank the columns of `SCHEMA`: the range that stands for the call, in which order it entered (from 0), its
        wait, the number of members, the ranges of `others`, and how many of these are left out as they are too many.
        And why calls are not matched; empty if they are.
    """
    try:
        matched = run.analyse("arrival")
    except Unavailable as reason:
        return {}, str(reason)
    placed = [
        one.calls.filter(pl.col("category").is_in(categories)).select(
            "collective", "kind", "number", "span_step", rank=pl.lit(one.rank.rank, pl.Int32)
        )
        for one in ranges
    ]
    calls = (
        matched.filter(pl.col("members") > 1)
        .select("rank", "collective", "group", "arrival", "wait_ns", "members", call="sequence")
        .join(pl.concat(placed), on=["rank", "collective"])
        .sort("group", "call", "arrival", "rank")
    )
    is_last = pl.col("arrival") == pl.col("arrival").max().over(*_CALL)
    calls = calls.with_columns(last=is_last & (pl.len().over(*_CALL) > 1), span=pl.struct(_SPAN))
    lasts = calls.filter("last").select(*_CALL, waited=pl.concat_list("span"))
    others = calls.filter(~pl.col("last")).group_by(_CALL, maintain_order=True).agg(all="span", number_of=pl.len())
    told = (
        calls.join(lasts, on=_CALL, how="left", nulls_equal=True, maintain_order="left")
        .join(others, on=_CALL, how="left", nulls_equal=True, maintain_order="left")
        .with_columns(
            others=pl.when("last").then(pl.col("all").list.head(MOST_LINKS)).otherwise("waited"),
            others_lost=pl.when(pl.col("last") & (pl.col("number_of") > MOST_LINKS)).then(
                pl.col("number_of") - MOST_LINKS
            ),
        )
    )
    parts = told.partition_by("rank", as_dict=True, maintain_order=True)
    return {int(key[0]): rows.select(list(SCHEMA)) for key, rows in parts.items()}, ""
