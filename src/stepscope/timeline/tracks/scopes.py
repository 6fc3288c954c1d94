"""The scopes that MindSpore puts into the names of operators and kernels: a track a level."""

from __future__ import annotations

import polars as pl

from stepscope.tables.operators import PLACE
from stepscope.text_columns import filled_in
from stepscope.timeline.scopes import scopes
from stepscope.timeline.tracks.base import Family, Part

_COLUMNS = ("rank", "start_ns", "duration_ns", "step")
_SIDES = {"kernels": "Layer {}", "operators": "Host layer {}"}
"""Tracks by the table whose names have scopes."""
_HOST_ORDER = 1000


def _scopes(part: Part) -> pl.LazyFrame | None:
    """Bars of the scopes of each rank, of its kernels and of its operators."""
    frames = []
    for rank in part.ranks:
        for place, (name, title) in enumerate(_SIDES.items()):
            own = part.table(name).filter((pl.col("rank") == rank) & pl.col("name").str.contains(PLACE))
            named = own.select(*_COLUMNS, full_name="name").drop_nulls(_COLUMNS[:-1]).collect()
            if named.height:
                bars = scopes(named).with_columns(rank=pl.lit(rank, pl.Int32), track=filled_in(title, "level"))
                order = pl.col("level") + place * _HOST_ORDER
                frames.append(bars.with_columns(order=order, table=pl.lit(name)))
    if not frames:
        return None
    return (
        pl.concat(frames)
        .lazy()
        .select(
            "rank",
            "start_ns",
            "name",
            "track",
            "order",
            "table",
            duration_ns=pl.col("end_ns") - pl.col("start_ns"),
            category=pl.lit("scope"),
        )
    )


FAMILY = Family(
    "scopes",
    "Scopes",
    "The scopes in the names of kernels and operators: each bar reaches from the first to the last of a scope in a "
    "step, as far as no other scope begins while nothing of this one runs.",
    "detail",
    _scopes,
    tables=("kernels", "operators"),
    priority=2,
    wanted=lambda options: options.scope_names,
)
