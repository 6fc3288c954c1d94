"""How often each rank's GPU lowers its clock, by the reason that it states."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.methods.intervals import starting_in
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

HEAT, HOST_POWER, POWER = "heat", "host power", "power limit"

_BITS = {HEAT: 0x20 | 0x40, HOST_POWER: 0x80, POWER: 0x4}
"""Bits of NVML's clock event reasons: thermal slowdown by software and hardware, power brake, software power cap."""

NO_REASONS = "why clocks are lowered was not sampled: stepscope's recorder does so on NVIDIA GPUs"


@analysis(
    "rank",
    columns(
        "rank",
        Column("reason", "string", "Why the clock is lowered.", values=tuple(_BITS)),
        "samples",
        Column("limited", "int64", "Samples in which it is lowered for this reason."),
        Column("share_ratio", "float64", "Share of the samples.", title="share"),
        Column("mean_mhz", "float64", "Mean clock in these samples; null if not sampled."),
        Column("free_mhz", "float64", "Mean clock in samples without any of these reasons; null if there are none."),
        nulls="mean_mhz free_mhz",
    ),
    together=True,
    nothing=NO_REASONS,
)
def clock_limits(counters: pl.LazyFrame, steps: pl.LazyFrame) -> pl.DataFrame:
    """Count the samples in steps by the reason for which the clock is lowered: one row per rank and reason that occurs.

    Raises:
        Unavailable: If no reasons were sampled.
    """
    named = counters.filter(
        pl.col("name").is_in(["clock_event_reasons", "sm_clock_mhz"]) & pl.col("value").is_not_null()
    )
    rows = named.select("rank", "time_ns", "name", "value").collect().sort("time_ns", "name", "value")
    inside = starting_in(rows, steps.select("rank", "start_ns", "end_ns").collect(), at="time_ns")
    known = pl.col("value").cast(pl.Int64, strict=False)  # null if it is no number of bits
    stated = inside.filter(pl.col("name") == "clock_event_reasons").select("rank", "time_ns", bits=known)
    found = stated.drop_nulls("bits")
    if found.is_empty():
        raise Unavailable(NO_REASONS)
    clocks = inside.filter(pl.col("name") == "sm_clock_mhz").select("rank", "time_ns", mhz="value")
    both = found.join(clocks.unique(["rank", "time_ns"], keep="first"), on=["rank", "time_ns"], how="left")
    every = sum(_BITS.values())
    free = (pl.col("bits") & every) == 0
    parts = []
    for reason, bits in _BITS.items():
        limited = (pl.col("bits") & bits) != 0
        parts.append(
            both.group_by("rank").agg(
                reason=pl.lit(reason),
                samples=pl.len().cast(pl.Int64),
                limited=limited.sum().cast(pl.Int64),
                share_ratio=limited.mean(),
                mean_mhz=pl.col("mhz").filter(limited).mean(),
                free_mhz=pl.col("mhz").filter(free).mean(),
            )
        )
    return pl.concat(parts).filter(pl.col("limited") > 0).sort("rank", -pl.col("limited"), "reason")
