"""The timed ranges of a rank that become spans: its slices, and device work and calls that are not among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from stepscope.analysis.methods.batches import batches
from stepscope.export.run_tables import table_of
from stepscope.run import Run
from stepscope.run.rank import Rank
from stepscope.tables import COLLECTIVES, TABLES

DEVICE = ("kernel", "memory", "communication")
"""Categories of device work, of which each slice has a row in `kernels`."""

SLICE, KERNEL, CALL = 1, 2, 3
"""Where a range comes from: its `kind`. Its `number` is that of its row in the table."""

TABLE_OF = {SLICE: "slices", KERNEL: "kernels", CALL: "collectives"}
"""The table of each kind."""

_PART_ROWS = 50_000
"""Ranges that are completed and encoded at once, chosen by us: some tens of MB with their texts."""

_MAX = (1 << 63) - 1
_TIME = ("start_ns", "duration_ns")
_PLACE = ("device", "stream", "correlation", "step")
_KEY = (*_TIME, "name")
_FACTS = {
    "type": pl.String(),
    "core": pl.String(),
    "grid": pl.String(),
    "block": pl.String(),
    "size_bytes": pl.Int64(),
    "direction": pl.String(),
    "input_shapes": pl.String(),
    "input_types": pl.String(),
    "output_shapes": pl.String(),
}
"""What is known of a range beside its time and place."""

_LACKED = {"process": pl.String(), "thread": pl.String(), "device": pl.Int32(), "parent": pl.Int64()}
"""What not all kinds of ranges have."""

_OF_OPERATOR = ("type", "input_shapes", "input_types")
_CALL_FACTS = ("group", "sequence", "operation", "size_bytes", "element_type", "peer")


@dataclass
class Ranges:
    """The ranges of one rank.

    Args:
        run: The run, perhaps narrowed to some steps.
        rank: The rank.
    """

    run: Run
    rank: Rank

    @cached_property
    def calls(self) -> pl.DataFrame:
        """The rank's calls, each with the range that stands for it: `kind`, `number`, `category`, `span_step`.

        A call is the slice or piece of device work with its name and times; where there is none, itself. It is left out
        if that is in a step which is not chosen: it may be in another step than the call.
        """
        schema = {"kind": pl.Int8(), "number": pl.Int64(), "category": pl.String(), "span_step": pl.Int32()}
        calls = COLLECTIVES.or_empty(table_of(self.run, "collectives", [self.rank])).collect()
        places = pl.DataFrame(schema={"collective": pl.Int64(), **schema})
        turn = pl.int_range(pl.len(), dtype=pl.Int64).over(*_KEY, "on_device")  # of calls that are alike
        keys = calls.select("collective", *_KEY, "on_device").with_columns(turn=turn)
        alike = keys.select(*_KEY, "on_device").unique()
        found = [
            source.with_columns(on_device=pl.col("category").is_in(DEVICE))
            .join(alike.lazy(), on=[*_KEY, "on_device"], how="semi")
            .select(*_KEY, "on_device", "kind", "number", "category", span_step="step")
            .collect(engine="streaming")
            for source in self._whole._recorded
        ]
        if found:
            sides = pl.concat(found).sort("kind", "number").with_columns(turn=turn)
            places = keys.join(sides, on=[*_KEY, "on_device", "turn"]).select("collective", *schema)
        calls = calls.join(places, on="collective", how="left", maintain_order="left")
        alone = pl.col("kind").is_null()
        if self.rank.steps is not None:
            calls = calls.filter(alone | self.rank.steps.expression("span_step"))
        return calls.with_columns(
            kind=pl.col("kind").fill_null(pl.lit(CALL, pl.Int8)),
            number=pl.coalesce("number", "collective"),
            category=pl.col("category").fill_null("communication"),
            span_step=pl.when(alone).then("step").otherwise("span_step"),
        )

    @cached_property
    def summary(self) -> pl.DataFrame:
        """Number of `ranges` by `kind`, `category` and `step`, and their `first_ns` and `last_ns`."""
        start = pl.col("start_ns")
        end = start + pl.min_horizontal(pl.col("duration_ns").clip(0), _MAX - start.clip(0))
        parts = [
            source.group_by("kind", "category", "step").agg(ranges=pl.len(), first_ns=start.min(), last_ns=end.max())
            for source in self._sources
        ]
        if not parts:
            schema = {"kind": pl.Int8, "category": pl.String, "step": pl.Int32, "ranges": pl.UInt32}
            return pl.DataFrame(schema={**schema, "first_ns": pl.Int64, "last_ns": pl.Int64})
        return pl.concat(pl.collect_all(parts, engine="streaming"))

    def parts(self, categories: frozenset[str]) -> Iterator[pl.DataFrame]:
        """The ranges of some categories in the order of the tables, some at a time, with all that is known of them."""
        for source in self._sources:
            for batch in batches(source.filter(pl.col("category").is_in(categories))):
                for part in batch.iter_slices(_PART_ROWS):
                    yield self._with_calls(self._with_facts(part))

    @cached_property
    def slices(self) -> pl.LazyFrame | None:
        """The rank's slices as ranges; None if it has none."""
        rows = table_of(self.run, "slices", [self.rank])
        columns = ("category", "name", "process", "thread", *_PLACE, "parent")
        return None if rows is None else _ranges(rows, SLICE, "slice", *columns)

    @cached_property
    def _kernels(self) -> pl.LazyFrame | None:
        """Device work that is not among the slices."""
        rows = table_of(self.run, "kernels", [self.rank])
        if rows is None:
            return None
        if self.rank.has("slices"):
            on_device = self.rank.whole.table("slices").filter(pl.col("category").is_in(DEVICE))
            if on_device.head(1).collect().height:
                return None
        category = pl.when(pl.col("kind") == "compute").then(pl.lit("kernel")).otherwise("kind")
        columns = ("category", "name", *_PLACE, *_FACTS)
        return _ranges(rows.with_columns(category=category).drop("kind"), KERNEL, "kernel", *columns)

    @property
    def _whole(self) -> Ranges:
        """The ranges of all steps."""
        return self if self.rank.steps is None else Ranges(self.run.original, self.rank.whole)

    @property
    def _recorded(self) -> list[pl.LazyFrame]:
        return [rows for rows in (self.slices, self._kernels) if rows is not None]

    @property
    def _sources(self) -> list[pl.LazyFrame]:
        """All ranges, by where they come from."""
        alone = self.calls.filter(kind=CALL)
        calls = _ranges(
            alone.lazy().drop("kind", "number"), CALL, "collective", "category", "name", "stream", "correlation", "step"
        )
        return [*self._recorded, *([calls] if alone.height else [])]

    def _with_facts(self, part: pl.DataFrame) -> pl.DataFrame:
        """Slices with what other tables know of them: operators by number, device work by name, time and stream."""
        if not part.height or part["kind"][0] != SLICE:
            return part
        part = part.drop(_FACTS)
        operators, work = (pl.col("category") == "operator"), pl.col("category").is_in(DEVICE)
        known = self._rows("operators", part.filter(operators)["number"], "slice")
        known = known.select(*_OF_OPERATOR, number="slice").unique("number", keep="first", maintain_order=True)
        part = part.join(known, on="number", how="left", maintain_order="left")
        kernels = self._rows("kernels", part.filter(work)["start_ns"], "start_ns").select(*_KEY, "stream", *_FACTS)
        kernels = kernels.unique([*_KEY, "stream"], keep="first", maintain_order=True).with_columns(work=True)
        part = part.with_columns(work=work).join(
            kernels, on=[*_KEY, "stream", "work"], how="left", nulls_equal=True, maintain_order="left", suffix="_"
        )
        return part.with_columns(pl.coalesce(name, f"{name}_") for name in _OF_OPERATOR)

    def _rows(self, table: str, values: pl.Series, column: str) -> pl.DataFrame:
        """The rows of a table in which a column is between the smallest and the largest of some values."""
        rows = TABLES[table].or_empty(table_of(self.run, table, [self.rank]) if values.len() else None)
        return rows.filter(pl.col(column).is_between(values.min(), values.max())).collect()

    def _with_calls(self, part: pl.DataFrame) -> pl.DataFrame:
        """Ranges with what is known of the call that they are, if they are one."""
        calls = self.calls.select("kind", "number", "collective", *_CALL_FACTS)
        joined = part.join(calls, on=["kind", "number"], how="left", maintain_order="left", suffix="_call")
        return joined.with_columns(size_bytes=pl.coalesce("size_bytes_call", "size_bytes"))


def _ranges(rows: pl.LazyFrame, kind: int, number: str, *columns: str) -> pl.LazyFrame:
    """Rows of a table as ranges, with all columns of them."""
    given = (*_TIME, *columns)
    missing = {name: dtype for name, dtype in {**_LACKED, **_FACTS}.items() if name not in given}
    return rows.select(pl.lit(kind, pl.Int8).alias("kind"), pl.col(number).alias("number"), *given).with_columns(
        pl.lit(None, dtype).alias(name) for name, dtype in missing.items()
    )
