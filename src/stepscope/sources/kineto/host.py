"""The ranges on host threads of a segment as one tree, by row number."""

from __future__ import annotations

import polars as pl

from stepscope.sources.kineto.layout import HOST_CLASSES
from stepscope.sources.kineto.segments import Segment
from stepscope.sources.nesting import nest

_MAX_CLIMB = 1000
_PLACE = ["start_ns", "place"]
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
        parts = (frame for name in HOST_CLASSES for frame in segment.frames(name, list(_CORE)))
        core = pl.concat([pl.DataFrame(schema=_CORE), *parts])
        ranges = core.select("start_ns", "duration_ns", thread="place")
        nested = nest(ranges, core["spent_ns"], segment.end_ns)
        self.parent = nested["parent"]
        self.depth = nested["depth"]
        self.self_ns = nested["self_ns"]
        self.spent_ns = nested["spent_ns"]
        self.goes_on = nested["goes_on"]
        """Rows that the next segment needs as well."""
        self.slices = core["slice"]
        """Number of each row in the table `slices`."""
        self.ends = ranges.select(pl.col("start_ns") + pl.col("duration_ns")).to_series()
        self._starts = core.select(*_PLACE).with_row_index("row")

    def is_operator(self, rows: pl.Series) -> pl.Series:
        """Whether rows are framework operators."""
        return rows < self.offsets["annotation"]

    def climb(self, rows: pl.Series, wanted: pl.Series) -> pl.Series:
        """For each row (or null) the nearest wanted one: itself or an ancestor; null if there is none."""
        stops = pl.DataFrame({"row": wanted.cast(pl.Int64)}).unique().with_columns(stop=pl.col("row"))
        table = pl.DataFrame({"row": rows.cast(pl.Int64)})
        found: pl.Series = pl.repeat(None, table.height, dtype=pl.Int64, eager=True)
        for _ in range(_MAX_CLIMB):
            hit = table.join(stops, on="row", how="left", maintain_order="left")["stop"]
            found = found.fill_null(hit)
            open_rows = table["row"].is_not_null() & found.is_null()
            if not open_rows.any():
                break
            above = self.parent.gather(table["row"])
            table = pl.DataFrame({"row": above, "open": open_rows}).select(row=pl.when("open").then("row"))
        return found

    def enclosing_operator(self, events: pl.DataFrame) -> pl.Series:
        """The innermost operator that is running when and where each event (`start_ns`, `place`) is."""
        coded = events.select(_PLACE).with_row_index("event").sort("start_ns")
        operators = self._starts.filter(pl.col("row") < self.offsets["annotation"]).sort("start_ns")
        last = coded.join_asof(operators, on="start_ns", by="place", check_sortedness=False).sort("event")
        times = last["start_ns"]
        rows: pl.Series = last["row"].cast(pl.Int64)
        for _ in range(_MAX_CLIMB):
            wrong = (self.ends.gather(rows) < times) | ~self.is_operator(rows)
            if not wrong.any():
                break
            above = pl.DataFrame({"row": rows, "up": self.parent.gather(rows), "wrong": wrong})
            rows = above.select(pl.when("wrong").then("up").otherwise("row")).to_series()
        return rows
