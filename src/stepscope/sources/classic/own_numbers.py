"""Steps of files that stepscope exported: these count from 1, and the list beside them has the recorded numbers."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.sources.base import Sink
from stepscope.tables import Table


class OwnNumbers:
    """Passes all on to another sink, steps by the numbers that they had when they were recorded.

    Args:
        sink: Takes the rows.
        steps: The number of the first step of the files, of the second, and so on.
    """

    def __init__(self, sink: Sink, steps: Sequence[int]) -> None:
        self._sink = sink
        self._numbers = {0: 0, **dict(enumerate(steps, 1))}
        self.workers = sink.workers
        self.issue = sink.issue
        self.scratch = sink.scratch
        self.advance = sink.advance

    def write(self, table: Table, frame: pl.DataFrame) -> None:
        """See `Sink`. What lies beyond the last step is in no step."""
        if "step" in frame.columns:
            step = pl.col("step").cast(pl.Int64).replace_strict(self._numbers, default=None, return_dtype=pl.Int32)
            frame = frame.with_columns(step=step)
        self._sink.write(table, frame)
