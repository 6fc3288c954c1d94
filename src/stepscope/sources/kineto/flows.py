"""Rows of `flows`: flows from forward to backward operators; those to the device only repeat correlations."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.flows import matched_flows
from stepscope.sources.kineto.events import Events
from stepscope.tables import FLOWS


def write_flows(events: Events, sink: Sink) -> None:
    """Write the flows that have both ends."""

    def ends() -> Iterator[pl.DataFrame]:
        for frame in events.frames("flow", ["phase", "id", "start_ns", "place"]):
            yield events.located(frame)

    for rows in matched_flows("forward_backward", ends, events.rows("flow")):
        sink.write(FLOWS, rows)
