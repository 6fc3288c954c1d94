"""Signs of leaks, blocks never released, fragmentation and memory running out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median as median_of
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.intervals import with_last
from stepscope.analysis.methods.statistics import grouped_in_memory, rounded
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column, schema_of, with_schema

GROWTH, UNRELEASED, FRAGMENTATION, NEAR_CAPACITY = "growth", "unreleased", "fragmentation", "near capacity"

_CURVE = ["rank", "component", "device"]
"""Columns that identify the curve of an allocator."""

MOST_STEPS = 200
"""Most steps that are compared pairwise; longer recordings are sampled."""


@dataclass(frozen=True)
class Limits:
    """When memory use is worth a hint."""

    near_capacity_ratio: float = limit(
        0.9, "of the capacity, in use at the peak", "chosen by us: a 10 % larger batch may not fit"
    )
    growth_steps: int = limit(4, "steps after the first", "chosen by us: fewer show no trend")
    growth_rising_ratio: float = limit(
        0.8, "of the pairs of steps, with the later one higher", "chosen by us: Kendall's tau of 0.6"
    )
    growth_ratio: float = limit(0.01, "of the peak, grown over the recording", "chosen by us: less is caching")
    growth_bytes: int = limit(1_000_000, "bytes, grown over the recording", "chosen by us: less is not worth a finding")
    unreleased_steps: int = limit(3, "steps that leave blocks, and steps without their release", "chosen by us")
    unreleased_bytes: int = limit(1_000_000, "bytes that one operator never released", "chosen by us")
    fragmentation_ratio: float = limit(
        0.3, "of the reserved memory, never in use", "chosen by us: caches of 20 % are usual"
    )
    fragmentation_reserved_ratio: float = limit(
        0.5, "of the capacity, reserved; if the capacity is known", "chosen by us: with less, memory is not short"
    )
    fragmentation_bytes: int = limit(
        256_000_000, "bytes reserved and never in use", "chosen by us: less is not worth a finding"
    )
    fragmentation_forced_ratio: float = limit(
        0.5, "of those bytes, reserved although as much was free", "chosen by us: the rest is reserved in advance"
    )


COLUMNS = columns(
    "rank",
    meaning("kind", "`growth`, `unreleased`, `fragmentation` or `near capacity`."),
    "graph component device",
    meaning("name", "Operator that allocated the blocks, for `unreleased`."),
    Column("bytes", "int64", "Bytes grown, never released, never in use, or still free."),
    Column("ratio", "float64", "Share of the peak, of the reserved memory, or of the capacity."),
    Column("per_step_bytes", "int64", "Growth, or bytes not released, per step."),
    meaning("steps", "Number of steps that show the hint."),
    Column("blocks", "int64", "Number of blocks, for `unreleased`."),
    meaning("peak_bytes", "Highest use."),
    "capacity_bytes",
    Column("forced_bytes", "int64", "Bytes reserved although as much was free, for `fragmentation`."),
    keep="kind graph",
)


@analysis("rank", COLUMNS, together=True, every_step=True)
def memory_hints(
    memory_curve: pl.LazyFrame | None,
    memory_peak: pl.DataFrame,
    allocations: pl.LazyFrame | None,
    steps: pl.LazyFrame | None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Look for leaks, fragmentation and memory running out: one row per hint; no row means no sign of trouble.

    They are of all steps, also where some are chosen, as one step shows neither growth nor what is never released.

    * `growth`: the low level of each step (without the first) rises from step to step in most pairs of steps
      (`growth_rising_ratio`), and the slope (median over all pairs, Theil and Sen) adds up over the recording. The low
      level is the lower quartile of memory in use, as single points may belong to another allocator.
    * `unreleased`: blocks of one operator, allocated in several steps and not released in the following steps.
    * `fragmentation`: memory that the allocator reserved but that was never in use, if it reserved more while at least
      the requested amount was free, and unless memory is plentiful. A pool of fixed size, or one that grows because it
      is full, is not fragmented: allocators reserve in advance.
    * `near capacity`: the peak of memory in use is close to the capacity. Memory that is only reserved does not count:
      it is available for the next allocation.

    Raises:
        Unavailable: If no memory was recorded.
    """
    peaks = memory_peak.drop("name")  # of a node, while hints name the operator that allocated blocks
    found = [_tight(peaks, limits)]
    if memory_curve is not None:
        found.append(_fragmented(peaks, memory_curve, limits))
    if memory_curve is not None and steps is not None:
        found.append(pl.DataFrame(_growing(memory_curve, steps, limits), schema=schema_of(COLUMNS)))
    if allocations is not None and steps is not None:
        found.append(_unreleased(allocations, steps, limits))
    return pl.concat([with_schema(part, schema_of(COLUMNS)) for part in found])


def _tight(peaks: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """Peaks close to the capacity."""
    used, capacity = pl.max_horizontal("peak_bytes", "stated_peak_bytes"), pl.col("capacity_bytes")
    full = peaks.filter((capacity > 0) & (used / capacity > limits.near_capacity_ratio))
    return full.with_columns(kind=pl.lit(NEAR_CAPACITY), ratio=used / capacity, bytes=capacity - used, peak_bytes=used)


def _fragmented(peaks: pl.DataFrame, curve: pl.LazyFrame, limits: Limits) -> pl.DataFrame:
    """Allocators of which much reserved memory was never in use."""
    reserved = pl.col("reserved_peak_bytes")
    unused = reserved - pl.col("allocated_peak_bytes")
    is_scarce = reserved / pl.col("capacity_bytes") > limits.fragmentation_reserved_ratio
    large = peaks.filter(
        (reserved > 0)
        & (unused / reserved > limits.fragmentation_ratio)
        & (unused >= limits.fragmentation_bytes)
        & is_scarce.fill_null(True)
    )
    if large.is_empty():
        return large
    rows = large.join(_forced(curve), on=_CURVE, nulls_equal=True, maintain_order="left")
    return rows.filter(pl.col("forced_bytes") >= limits.fragmentation_forced_ratio * unused).with_columns(
        kind=pl.lit(FRAGMENTATION), ratio=unused / reserved, bytes=unused, peak_bytes="allocated_peak_bytes"
    )


def _forced(curve: pl.LazyFrame) -> pl.DataFrame:
    """What each allocator reserved although at least the requested amount was free."""
    sizes = pl.col("reserved_bytes"), pl.col("allocated_bytes")
    both = curve.filter(column.is_not_null() for column in sizes).select(*_CURVE, *sizes)
    reserved, allocated = sizes
    before_reserved, before_allocated = (column.shift(1).over(_CURVE) for column in sizes)
    further, asked = reserved - before_reserved, allocated - before_allocated
    is_free = asked <= before_reserved - before_allocated
    forced = pl.when((further > 0) & (asked > 0) & is_free).then(further).otherwise(0)
    parts: list[pl.DataFrame] = []
    lasts = None  # of each curve, so that the first of the next batch has one before it
    for batch in batches(both):
        rows = batch if lasts is None else pl.concat([lasts, batch])
        parts.append(rows.with_columns(forced_bytes=forced).group_by(_CURVE).agg(pl.col("forced_bytes").sum()))
        lasts = rows.unique(_CURVE, keep="last")
    return pl.concat(parts).group_by(_CURVE).agg(pl.col("forced_bytes").sum())


def _growing(curve: pl.LazyFrame, steps: pl.LazyFrame, limits: Limits) -> list[dict[str, Any]]:
    """Memory curves whose low level rises from step to step."""
    known = curve.filter(pl.col("allocated_bytes").is_not_null()).select(*_CURVE, "time_ns", "allocated_bytes")
    ranges = steps.sort("end_ns", "step").select("rank", "step", "start_ns", "end_ns").collect()
    level = pl.col("allocated_bytes")
    # a step may go on in the next batch, so its levels are kept: 8 bytes for each
    parts = [grouped_in_memory(_within(batch, ranges), [*_CURVE, "step"], [level]) for batch in batches(known)]
    levels = level.explode()
    floors = (
        pl.concat(parts)
        .group_by(*_CURVE, "step")
        .agg(low=levels.quantile(0.25, "lower"), peak=levels.max())
        .sort(*_CURVE, "step")
    )
    curves = floors.group_by(_CURVE, maintain_order=True).agg("step", "low", pl.col("peak").max())
    found = []
    for *key, numbers, floor, peak in curves.iter_rows():
        lows = floor[1:]
        slope, rising = trend(numbers[1:], lows)
        grown = round(slope * (len(lows) - 1))
        enough = grown >= max(limits.growth_bytes, limits.growth_ratio * peak)
        if len(lows) >= limits.growth_steps and rising >= limits.growth_rising_ratio and enough:
            hint = {"kind": GROWTH, "bytes": grown, "ratio": grown / peak, "per_step_bytes": round(slope)}
            found.append({**dict(zip(_CURVE, key, strict=True)), **hint, "steps": len(lows), "peak_bytes": peak})
    return found


def _within(curve: pl.DataFrame, ranges: pl.DataFrame) -> pl.DataFrame:
    """The points of curves in steps."""
    return with_last(curve, ranges, "step", at="time_ns").filter(pl.col("time_ns") <= pl.col("until_ns"))


def trend(steps: Sequence[int], values: Sequence[int]) -> tuple[float, float]:
    """Slope per step (Theil and Sen: median slope of all pairs) and the share of rising pairs.

    Examples:
        >>> trend([1, 2, 3], [10, 20, 30])
        (10, 1.0)
    """
    stride = max(len(values) // MOST_STEPS, 1)
    points = list(zip(steps, values, strict=True))[::stride]
    slopes = [(b - a) / (t - s) for (s, a), (t, b) in combinations(points, 2)]
    if not slopes:
        return 0.0, 0.0
    return median_of(slopes), sum(slope > 0 for slope in slopes) / len(slopes)


def _unreleased(blocks: pl.LazyFrame, steps: pl.LazyFrame, limits: Limits) -> pl.DataFrame:
    """Operators that leave blocks behind step after step."""
    ranges = steps.sort("step").collect()
    lasts = (
        ranges.group_by("rank")
        .agg(last_ns=pl.col("start_ns").sort().slice(-limits.unreleased_steps).first(), count=pl.len())
        .filter(pl.col("count") > limits.unreleased_steps)
    )
    if lasts.is_empty():
        return pl.DataFrame()
    left = blocks.filter(pl.col("release_ns").is_null()).join(lasts.lazy(), on="rank", maintain_order="left")
    kept = left.filter(pl.col("allocation_ns") < pl.col("last_ns")).collect()
    return (
        with_last(kept, ranges, "step", at="allocation_ns")
        .filter(pl.col("step").is_not_null())
        .group_by("rank", "device", "name")
        .agg(
            kind=pl.lit(UNRELEASED),
            steps=pl.col("step").n_unique().cast(pl.Int64),
            blocks=pl.len().cast(pl.Int64),
            bytes=pl.col("size_bytes").sum(),
        )
        .filter((pl.col("steps") >= limits.unreleased_steps) & (pl.col("bytes") >= limits.unreleased_bytes))
        .with_columns(per_step_bytes=rounded(pl.col("bytes") / pl.col("steps")))
        .sort("rank", -pl.col("bytes"), "device", "name")
    )
