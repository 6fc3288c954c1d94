"""Which span encloses each range: the nearest range around it, or around its launch, that becomes a span as well."""

from __future__ import annotations

import polars as pl

from stepscope.export.otlp.ranges import DEVICE
from stepscope.tables.base import nulls

_ROUNDS = 64
"""Twice as far with each of them: more than enough for any depth. Slices that enclose one another have no end."""


class Parents:
    """The parents of the ranges of one rank.

    It holds about thirty bytes a slice, as an enclosing slice may stand anywhere in the table.

    Args:
        slices: `number`, `parent`, `category`, `correlation`, `start_ns`, `step` of all slices of the rank; None if it
            has none.
        categories: Categories of ranges that become spans.
    """

    def __init__(self, slices: pl.LazyFrame | None, categories: frozenset[str]) -> None:
        if slices is None:
            self._numbers = pl.Series("number", [], dtype=pl.Int64)
            self._steps = pl.Series("step", [], dtype=pl.Int32)
            self._nearest = pl.Series([0], dtype=pl.UInt32)
            self._launches = pl.DataFrame(schema={"correlation": pl.Int64, "launch": pl.UInt32})
            return
        chosen = pl.col("category").is_in(categories)
        rows = slices.select("number", "parent", "step", chosen=chosen).collect(engine="streaming").sort("number")
        self._numbers, self._steps = rows["number"], rows["step"]
        self._nearest = self._resolved(rows["parent"], rows["chosen"])
        self._launches = self._resolved_launches(slices)

    def of(self, part: pl.DataFrame) -> pl.DataFrame:
        """Ranges with the number of the slice that is their parent (`parent`) and its step (`parent_step`).

        Device work is below its launch. `by_launch` says whether a parent is one; a range without parent has null.

        Args:
            part: `parent`, `category`, `correlation` of ranges, with the numbers of slices as recorded.
        """
        joined = part.join(self._launches, on="correlation", how="left", maintain_order="left")
        launch = pl.when(pl.col("category").is_in(DEVICE)).then("launch")
        found = joined.with_columns(around=self._nearest_of(joined["parent"])).with_columns(
            launch=pl.when(pl.col("around").is_null()).then(launch)
        )
        place = found.select(pl.coalesce("around", "launch")).to_series()
        return found.with_columns(
            self._numbers.gather(place).alias("parent"),
            self._steps.gather(place).alias("parent_step"),
            pl.col("launch").is_not_null().alias("by_launch"),
        ).drop("around", "launch")

    def _places(self, numbers: pl.Series) -> pl.Series:
        """Where slices are; null for those that there are not."""
        if self._numbers.is_empty():
            return nulls(numbers.name, pl.UInt32(), len(numbers))
        place = self._numbers.search_sorted(numbers).cast(pl.UInt32).clip(0, len(self._numbers) - 1)
        there = self._numbers.gather(place)
        frame = pl.DataFrame([numbers.alias("number"), place.alias("place"), there.alias("there")])
        return frame.select(pl.when(pl.col("number") == pl.col("there")).then("place")).to_series()

    def _nearest_of(self, numbers: pl.Series) -> pl.Series:
        """The nearest slice that becomes a span, from given ones on; null if there is none."""
        return self._ended(self._nearest.gather(self._places(numbers)))

    def _resolved(self, parents: pl.Series, chosen: pl.Series) -> pl.Series:
        """For each slice the nearest one that becomes a span, from itself on; for none the number after the last."""
        none = len(parents)
        frame = pl.DataFrame([self._places(parents).alias("parent"), chosen]).with_row_index("own")
        up = pl.when("chosen").then("own").otherwise(pl.col("parent").fill_null(none))
        nearest = pl.concat([frame.select(up.alias("up")).to_series(), pl.Series([none], dtype=pl.UInt32)])
        for _ in range(_ROUNDS):
            further = nearest.gather(nearest)
            if (further == nearest).all():
                break
            nearest = further
        ends = pl.concat([chosen, pl.Series([True])]).gather(nearest)
        return pl.select(pl.when(ends).then(nearest).otherwise(pl.lit(none, pl.UInt32))).to_series()

    def _ended(self, places: pl.Series) -> pl.Series:
        """Places, with null for no slice."""
        return pl.select(pl.when(places < len(self._numbers)).then(places)).to_series()

    def _resolved_launches(self, slices: pl.LazyFrame) -> pl.DataFrame:
        """By correlation, the place of the span around the launch.

        Where several host calls have a correlation, these are a call of the runtime and, before it, those that put it
        into a queue: the last call of the runtime below a span counts, else the last other one.
        """
        on_host = pl.col("correlation").is_not_null() & ~pl.col("category").is_in(DEVICE)
        rows = slices.filter(on_host).select(
            "correlation", "number", "start_ns", runtime=pl.col("category") == "runtime"
        )
        calls = rows.collect(engine="streaming")
        found = calls.with_columns(launch=self._nearest_of(calls["number"])).drop_nulls("launch")
        last = found.sort("runtime", "start_ns", "number").unique("correlation", keep="last", maintain_order=True)
        return last.select("correlation", "launch")
