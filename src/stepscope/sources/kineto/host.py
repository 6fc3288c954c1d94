"""The ranges on host threads as one tree, by row number; row numbers are the `slice` numbers of the tables."""

from __future__ import annotations

import polars as pl

from stepscope.sources.kineto.layout import HOST_CLASSES
from stepscope.sources.kineto.spool import Spool
from stepscope.sources.nesting import nest

_MAX_CLIMB = 1000


class HostTree:
    """Parents, depths and self times of all host ranges, numbered class by class in file order."""

    def __init__(self, spool: Spool) -> None:
        self.offsets: dict[str, int] = {}
        """First row of each class."""
        self.rows = 0
        for name in HOST_CLASSES:
            self.offsets[name] = self.rows
            self.rows += spool.rows(name)
        self._threads = _threads(spool)
        parts = (
            self._coded(frame).select(*_CORE)
            for name in HOST_CLASSES
            for frame in spool.frames(name, [*_PLACE, "duration_ns"])
        )
        core = pl.concat([pl.DataFrame(schema=_CORE), *parts])
        nested = nest(core)
        self.parent = nested["parent"]
        self.depth = nested["depth"]
        self.self_ns = nested["self_ns"]
        self._starts = core.select("start_ns", "thread").with_row_index("row")
        self.ends = core.select(pl.col("start_ns") + pl.col("duration_ns")).to_series()

    def _coded(self, frame: pl.DataFrame) -> pl.DataFrame:
        """`frame` with its thread as one number."""
        return frame.join(
            self._threads, on=["process", "thread"], how="left", nulls_equal=True, maintain_order="left"
        ).with_columns(thread=pl.col("code").fill_null(0))

    def is_operator(self, rows: pl.Series) -> pl.Series:
        """Whether rows are framework operators."""
        return rows < self.offsets["annotation"]

    def climb(self, rows: pl.Series, wanted: pl.Series) -> pl.Series:
        """For each row the nearest one that is wanted: itself or an ancestor; null if there is none.

        Args:
            rows: Row numbers, with nulls.
            wanted: Row numbers that stop the climb.
        """
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
        """The innermost operator that is running when and where each event (`start_ns`, `process`, `thread`) is."""
        coded = self._coded(events.select(_PLACE)).with_row_index("event").sort("start_ns")
        operators = self._starts.filter(pl.col("row") < self.offsets["annotation"]).sort("start_ns")
        last = coded.join_asof(operators, on="start_ns", by="thread", check_sortedness=False).sort("event")
        times = last["start_ns"]
        rows: pl.Series = last["row"].cast(pl.Int64)
        for _ in range(_MAX_CLIMB):
            wrong = (self.ends.gather(rows) < times) | ~self.is_operator(rows)
            if not wrong.any():
                break
            above = pl.DataFrame({"row": rows, "up": self.parent.gather(rows), "wrong": wrong})
            rows = above.select(pl.when("wrong").then("up").otherwise("row")).to_series()
        return rows


_PLACE = ["start_ns", "process", "thread"]
_CORE = {"start_ns": pl.Int64, "duration_ns": pl.Int64, "thread": pl.UInt32}


def _threads(spool: Spool) -> pl.DataFrame:
    """A number for each pair of process and thread."""
    schema = {"process": pl.String, "thread": pl.String}
    seen = [frame.select("process", "thread").unique() for name in HOST_CLASSES for frame in spool.frames(name, _PLACE)]
    pairs = pl.concat([pl.DataFrame(schema=schema), *seen]).unique(maintain_order=True)
    return pairs.with_row_index("code", offset=1)
