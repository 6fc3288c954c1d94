"""A sink for one window of several: what is written at once is of the rank's clock, and its ids of the window alone."""

from __future__ import annotations

import polars as pl

from stepscope.sources.base import Sink
from stepscope.tables import FLOWS, Table


class MovedSink:
    """Passes all on to another sink, flows by the common clock and with ids of their own.

    Args:
        sink: The recording's.
        shift_ns: Added to times.
        number: The window's.
    """

    def __init__(self, sink: Sink, shift_ns: int, number: int) -> None:
        self._sink = sink
        self._shift_ns = shift_ns
        self._number = number
        self.workers = sink.workers
        self.issue = sink.issue
        self.scratch = sink.scratch
        self.advance = sink.advance

    def write(self, table: Table, frame: pl.DataFrame) -> None:
        """See `Sink`. Readers write nothing but flows before all windows are known."""
        if table is not FLOWS:
            raise ValueError(f"{table.name} is written when all windows are read")
        times = pl.col("from_ns", "to_ns") + self._shift_ns
        self._sink.write(table, frame.with_columns(times, flow=pl.format("{}.{}", pl.lit(self._number), "flow")))
