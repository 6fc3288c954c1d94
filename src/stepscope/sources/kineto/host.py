"""The ranges on host threads of a segment as one tree, by row number."""

from __future__ import annotations

import polars as pl

from stepscope.sources import ancestors
from stepscope.sources.kineto.layout import HOST_CLASSES
from stepscope.sources.kineto.segments import Segment
from stepscope.sources.nesting import nest

_CORE = {"start_ns": pl.Int64, "duration_ns": pl.Int64, "place": pl.Int32, "slice": pl.Int64, "spent_ns": pl.Int64}


class HostTree:
    """Parents, depths and self times of a segment's host ranges, numbered class by class in file order."""

    def __init__(self, segment: Segment) -> None:
        self.offsets: dict[str, int] = {}
        """First row of each class."""
        self.rows = 0
        for name in HOST_CLASSES:
            self.offsets[name] = self.rows
            self.rows += segment.rows(name)
        parts = (segment.whole(name, list(_CORE)) for name in HOST_CLASSES if segment.rows(name))
        core = pl.concat([pl.DataFrame(schema=_CORE), *parts], rechunk=True)
        ranges = pl.DataFrame([core["start_ns"], core["duration_ns"], core["place"].cast(pl.Int64).alias("thread")])
        nested = nest(ranges, core["spent_ns"], segment.end_ns)
        self.parent = nested["parent"]
        self.depth = nested["depth"]
        self.self_ns = nested["self_ns"]
        self.spent_ns = nested["spent_ns"]
        self.goes_on = nested["goes_on"]
        """Rows that the next segment needs as well."""
        self.slices = core["slice"]
        """Number of each row in the table `slices`."""
        self._ranges = ranges

    @property
    def operators(self) -> int:
        """How many rows are framework operators; they come first."""
        return self.offsets["annotation"]

    def climb(self, rows: pl.Series, wanted: pl.Series) -> pl.Series:
        """For each row (or null) the nearest wanted one: itself or an ancestor; null if there is none."""
        return ancestors.climb(rows.cast(pl.Int64), self.parent, wanted.cast(pl.Int64))

    def enclosing_operator(self, events: pl.DataFrame) -> pl.Series:
        """The innermost operator that is running when and where each event (`start_ns`, `place`) is."""
        moments = pl.DataFrame([events["start_ns"], events["place"].cast(pl.Int64).alias("thread")])
        return ancestors.running(self._ranges, self.parent, self.operators, moments)
