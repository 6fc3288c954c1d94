"""How far the clock of each rank stands from the others, from the ends of calls that end for all at once."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.call_positions import positions
from stepscope.analysis.methods.statistics import MAD_TO_SIGMA, rounded
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column


@dataclass(frozen=True)
class Limits:
    """When a difference of ends counts as a difference of clocks."""

    significant_ns: int = limit(100_000, "ns", "below it hosts count as synchronised; NTP in one room holds about this")
    sigmas: float = limit(3.0, "standard errors", "an offset within so many is noise")
    rounds: int = limit(8, "alternations of the two medians", "groups are connected within a few")


LIMITS = Limits()


@analysis(
    "job",
    columns(
        "rank offset_ns",
        Column("spread_ns", "int64", "Noise of one call's end; null if no call was used."),
        meaning("calls", "Number of its calls that were used."),
    ),
    whole_job=True,
)
def clocks(
    collectives: pl.LazyFrame, ranks: pl.LazyFrame, steps: pl.LazyFrame | None = None, limits: Limits = LIMITS
) -> pl.DataFrame:
    """Estimate each rank's clock offset against the job's median clock.

    A collective ends on all members at nearly the same moment, so the median difference between a rank's ends
    and the median ends of its calls is the offset of its clock. Ranks of one host share a clock and so an
    offset. An offset that is small or within its own noise is taken as 0.

    Returns:
        One row a rank. Subtract `offset_ns` from its times to get the common clock.
    """
    ends = (
        positions(collectives, steps)
        .filter(~pl.col("operation").is_in(["send", "recv", "send_recv"]))
        .select("rank", "group", "sequence", end_ns=pl.col("start_ns") + pl.col("duration_ns"))
        .filter(pl.len().over("group", "sequence") > 1)
        .collect()
    )
    everyone = ranks.select("rank", "host").collect().unique("rank", keep="first")
    if ends.is_empty():
        return everyone.select(
            "rank",
            offset_ns=pl.lit(0, pl.Int64),
            spread_ns=pl.lit(None, pl.Int64),
            calls=pl.lit(0, pl.UInt32),
        ).sort("rank")
    host = pl.coalesce("host", pl.format("rank {}", pl.col("rank")))
    call = ["group", "sequence"]
    # Medians are floats, which cannot hold ns since the epoch: count from the first end of each call.
    since_first = pl.col("end_ns") - pl.col("end_ns").min().over(call)
    ends = ends.with_columns(end_ns=since_first)
    ends = ends.join(everyone.with_columns(clock=host), on="rank").with_columns(offset=pl.lit(0.0))
    for _ in range(limits.rounds):
        corrected = pl.col("end_ns") - pl.col("offset")
        ends = ends.with_columns(gap=pl.col("end_ns") - corrected.median().over(call))
        ends = ends.with_columns(offset=pl.col("gap").median().over("clock"))
    spread = (pl.col("gap") - pl.col("gap").median()).abs().median() * MAD_TO_SIGMA
    found = ends.group_by("clock").agg(offset=pl.col("gap").median(), spread=spread, calls=pl.col("sequence").len())
    noise = limits.sigmas * pl.col("spread") / pl.col("calls").sqrt()
    real = (pl.col("offset").abs() > limits.significant_ns) & (pl.col("offset").abs() > noise)
    offset = pl.when(real & (pl.len() > 1)).then(pl.col("offset")).otherwise(0.0)
    calls = ends.group_by("rank").agg(own_calls=pl.len())
    return (
        everyone.with_columns(clock=host)
        .join(
            found.with_columns(
                offset_ns=rounded(offset),
                spread_ns=rounded(pl.col("spread")),
            ),
            on="clock",
            how="left",
        )
        .join(calls, on="rank", how="left")
        .select("rank", pl.col("offset_ns").fill_null(0), "spread_ns", calls=pl.col("own_calls").fill_null(0))
        .sort("rank")
    )
