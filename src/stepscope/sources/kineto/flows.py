"""Rows of `flows`: arrows from forward to backward operators; those to the device only repeat correlations."""

from __future__ import annotations

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.kineto.events import Events
from stepscope.tables import FLOWS

_PART_ROWS = 1_000_000
"""About as many ends of arrows are matched at a time."""


def write_flows(events: Events, sink: Sink) -> None:
    """Write the arrows that have both ends."""
    parts = 1 + events.rows("flow") // _PART_ROWS
    part = pl.col("id").hash(seed=0) % parts
    for number in range(parts):
        frames = events.frames("flow", ["phase", "id", "start_ns", "place"])
        arrows = list(frames if parts == 1 else (frame.filter(part == number) for frame in frames))
        if not arrows:
            return
        located = events.located(pl.concat(arrows))
        tails = located.filter(pl.col("phase") == "s").select(flow="id", from_ns="start_ns", from_thread="thread")
        heads = located.filter(pl.col("phase") == "f").select(flow="id", to_ns="start_ns", to_thread="thread")
        joined = (
            tails.drop_nulls("flow")
            .unique("flow", keep="first", maintain_order=True)
            .join(heads.unique("flow", keep="first"), on="flow", how="inner", maintain_order="left")
        )
        sink.write(FLOWS, joined.with_columns(kind=pl.lit("forward_backward")))
