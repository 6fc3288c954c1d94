"""How far each rank's clock is off, from collectives, which end on all ranks at nearly the same moment."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.call_positions import CALL, positions
from stepscope.analysis.methods.intervals import END
from stepscope.analysis.methods.statistics import MAD_TO_SIGMA, rounded
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column
from stepscope.tables.communication import POINT_TO_POINT


@dataclass(frozen=True)
class Limits:
    """When a difference between end times counts as a clock offset."""

    significant_ns: int = limit(
        100_000, "ns", "smaller offsets count as synchronised; NTP in one room achieves about this"
    )
    sigmas: float = limit(3.0, "standard errors", "a smaller offset is noise")
    rounds: int = limit(8, "alternations of the two medians", "connected groups settle within a few")


@analysis(
    "job",
    columns(
        "rank offset_ns",
        Column("spread_ns", "int64", "Noise of a single call's end time; null if no call was used."),
        meaning("calls", "Number of its calls used for the estimate."),
    ),
    whole_job=True,
)
def clocks(
    collectives: pl.LazyFrame, ranks: pl.LazyFrame, steps: pl.LazyFrame | None = None, limits: Limits = Limits()
) -> pl.DataFrame:
    """Estimate each rank's clock offset from the job's median clock.

    A collective ends on all members at nearly the same moment, so the offset of a rank's clock is the median difference
    between its end times and the median end times of the calls. Ranks of one host share a clock and thus an offset, and
    calls within a host show nothing of it. An offset that is small or within its own noise is taken as 0.

    Returns:
        One row per rank. Subtract `offset_ns` from its times to get the common clock.
    """
    ends = (
        positions(collectives, steps)
        .filter(~pl.col("operation").is_in(POINT_TO_POINT))
        .select("rank", *CALL, end_ns=END)
        .filter(pl.len().over(CALL) > 1)
        .collect()
    )
    everyone = ranks.select("rank", "host").collect().unique("rank", keep="first")
    everyone = everyone.with_columns(clock=pl.coalesce("host", pl.format("rank {}", pl.col("rank"))))
    # Medians are floats, which cannot hold ns since the epoch, so count from the first end of each call.
    ends = ends.with_columns(pl.col("end_ns") - pl.col("end_ns").min().over(CALL))
    ends = ends.join(everyone, on="rank").filter(pl.col("clock").n_unique().over(CALL) > 1)
    ends = ends.with_columns(offset=pl.lit(0.0))
    for _ in range(limits.rounds):
        corrected = pl.col("end_ns") - pl.col("offset")
        ends = ends.with_columns(gap=pl.col("end_ns") - corrected.median().over(CALL))
        ends = ends.with_columns(offset=pl.col("gap").median().over("clock"))
    spread = (pl.col("gap") - pl.col("gap").median()).abs().median() * MAD_TO_SIGMA
    found = ends.group_by("clock").agg(offset=pl.col("gap").median(), spread=spread, calls=pl.col("sequence").len())
    noise = limits.sigmas * pl.col("spread") / pl.col("calls").sqrt()
    real = (pl.col("offset").abs() > limits.significant_ns) & (pl.col("offset").abs() > noise)
    offset = pl.when(real & (pl.len() > 1)).then(pl.col("offset")).otherwise(0.0)
    figures = found.select("clock", offset_ns=rounded(offset), spread_ns=rounded(pl.col("spread")))
    return (
        everyone.join(figures, on="clock", how="left")
        .join(ends.group_by("rank").agg(calls=pl.len()), on="rank", how="left")
        .select("rank", pl.col("offset_ns").fill_null(0), "spread_ns", pl.col("calls").fill_null(0))
        .sort("rank")
    )
