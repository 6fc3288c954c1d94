"""How much memory each step needs: its peaks, and what operators allocate in it. What two runs are compared by."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.batches import batches_by_time
from stepscope.analysis.methods.intervals import with_last
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column

_ALLOCATOR = ("rank", "step", "component", "device")

PEAKS = columns(
    "rank step component device",
    Column("peak_bytes", "int64", "Most memory in use in the step, also what was in use as it began."),
    Column("reserved_peak_bytes", "int64", "Most memory reserved by the allocator in the step."),
    nulls="component device peak_bytes reserved_peak_bytes",
)

ALLOCATED = columns(
    "rank step",
    meaning("name", "Operator that allocates."),
    meaning("count", "Number of blocks that it allocates in the step."),
    Column("size_bytes", "int64", "Their size.", title="size"),
    nulls="name",
)


@analysis("rank", PEAKS, together=True)
def memory_steps(memory_curve: pl.LazyFrame, steps: pl.LazyFrame) -> pl.DataFrame:
    """Find the peak of each allocator in each step in which its memory changes, in order."""
    ranges = steps.select("rank", "step", "start_ns", "end_ns").sort("start_ns", "step").collect()
    before = pl.col("allocated_bytes") - pl.col("change_bytes").fill_null(0)
    changed = memory_curve.select(
        *("rank", "component", "device", "time_ns", "reserved_bytes"),
        used_bytes=pl.max_horizontal("allocated_bytes", before),
    )
    parts = []
    for batch in batches_by_time(changed, "time_ns"):
        placed = with_last(batch, ranges, "step", at="time_ns").filter(pl.col("time_ns") <= pl.col("until_ns"))
        parts.append(_highest(placed.rename({"used_bytes": "peak_bytes", "reserved_bytes": "reserved_peak_bytes"})))
    return _highest(pl.concat(parts)).select(names(PEAKS)).sort(_ALLOCATOR, nulls_last=True)


def _highest(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by(_ALLOCATOR).agg(pl.col("peak_bytes", "reserved_peak_bytes").max())


@analysis("rank", ALLOCATED, together=True)
def allocation_steps(allocations: pl.LazyFrame, steps: pl.LazyFrame) -> pl.DataFrame:
    """Sum up what operators allocate in each step, in order."""
    ranges = steps.select("rank", "step", "start_ns", "end_ns").sort("start_ns", "step").collect()
    rows = allocations.select("rank", "name", "size_bytes", "allocation_ns")
    parts = []
    for batch in batches_by_time(rows, "allocation_ns"):
        placed = with_last(batch, ranges, "step", at="allocation_ns")
        inside = placed.filter(pl.col("allocation_ns") <= pl.col("until_ns"))
        parts.append(
            inside.group_by("rank", "step", "name").agg(
                pl.len().cast(pl.Int64).alias("count"), pl.col("size_bytes").sum()
            )
        )
    sums = pl.concat(parts).group_by("rank", "step", "name").agg(pl.col("count", "size_bytes").sum())
    return sums.select(names(ALLOCATED)).sort("rank", "step", "name", nulls_last=True)
