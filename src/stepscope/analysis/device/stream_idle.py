"""Why each stream of a device stands still between two pieces of its work."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.distributions import STATISTICS, distributions
from stepscope.analysis.methods.statistics import share_of
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column

CAUSES = ("host", "kernel", "other", "unknown")


@dataclass(frozen=True)
class Limits:
    """What passes for the time that a device needs from one kernel to the next."""

    consecutive_ns: float = limit(
        30e3, "ns, from the end of one piece of work to the next", "HTA's 30, in us as it uses it"
    )


LIMITS = Limits()


@analysis(
    "rank",
    columns(
        "rank",
        meaning("device", "Device index; null if not recorded."),
        "stream",
        Column("cause", "string", "Why nothing runs on the stream.", values=CAUSES),
        meaning("share_ratio", "Share of the stream's idle time."),
        *STATISTICS,
        nulls="device stream std_ns",
    ),
    together=True,
)
def stream_idle(kernels: pl.LazyFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Sum up the gaps between the work of each stream by cause: one row per stream and cause, in order.

    Args:
        kernels: Device work.
        limits: What passes for the time that a device needs from one kernel to the next.
    """
    keys = ["rank", "device", "stream"]
    work = kernels.select(*keys, "start_ns", "duration_ns", "launch_start_ns").collect(engine="streaming")
    ordered = work.sort(*keys, "start_ns", nulls_last=True, maintain_order=True)
    reached = (pl.col("start_ns") + pl.col("duration_ns")).cum_max().shift(1).over(keys)
    launch = pl.col("launch_start_ns")
    gaps = ordered.with_columns(reached=reached).select(
        *keys,
        duration_ns=pl.col("start_ns") - pl.col("reached"),
        cause=pl.when(launch > pl.col("reached")).then(pl.lit("host"))
        .when(pl.col("start_ns") - pl.col("reached") < limits.consecutive_ns).then(pl.lit("kernel"))
        .when(launch.is_null()).then(pl.lit("unknown"))
        .otherwise(pl.lit("other")),
    ).filter(pl.col("duration_ns") > 0)  # fmt: skip
    sums = distributions(gaps.lazy(), [*keys, "cause"])
    share = share_of(pl.col("total_ns"), *keys).alias("share_ratio")
    found = sums.with_columns(share).select(*keys, "cause", "share_ratio", *(column.name for column in STATISTICS))
    return found.sort(*keys, "cause", nulls_last=True)
