"""The scopes that MindSpore puts into the names of operators and kernels: a track a level."""

from __future__ import annotations

import polars as pl

from stepscope.tables.operators import PLACE
from stepscope.text_columns import filled_in
from stepscope.timeline.scopes import scopes
from stepscope.timeline.tracks.base import Family, Part

_COLUMNS = ("rank", "start_ns", "duration_ns")


def _scopes(part: Part) -> pl.LazyFrame | None:
    """Bars of the scopes of each rank: of its kernels, if their names have scopes, else of its operators."""
    frames = []
    kernels = part.table("kernels").select(*_COLUMNS, full_name="name", thread=pl.col("stream").cast(pl.String))
    operators = part.table("operators").select(*_COLUMNS, full_name="name", thread="thread")
    for rank in part.ranks:
        for table, thread in ((kernels, pl.lit("device")), (operators, pl.col("thread"))):
            own = table.filter((pl.col("rank") == rank) & pl.col("full_name").str.contains(PLACE))
            named = own.with_columns(thread=thread).sort("start_ns", maintain_order=True).collect()
            if named.height:
                frames.append(scopes(named).with_columns(rank=pl.lit(rank, pl.Int32)))
                break
    if not frames:
        return None
    return (
        pl.concat(frames)
        .lazy()
        .select(
            "rank",
            "start_ns",
            "name",
            track=filled_in("Layer {}", "level"),
            order="level",
            duration_ns=pl.col("end_ns") - pl.col("start_ns"),
            category=pl.lit("scope"),
        )
    )


FAMILY = Family(
    "scopes",
    "Scopes",
    "The scopes in the names of kernels, or else operators: each bar reaches from the first to the last in a row.",
    "detail",
    _scopes,
    tables=("kernels", "operators"),
    priority=2,
    wanted=lambda options: options.scope_names,
)
