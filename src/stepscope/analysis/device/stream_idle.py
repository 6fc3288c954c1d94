"""Why each stream of a device stands still between two pieces of its work."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.statistics import duration_statistics
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
        Column("count", "int64", "Number of gaps."),
        meaning("total_ns", "Their time."),
        Column("share_ratio", "float64", "Share of the stream's idle time.", title="share", importance=59),
        "mean_ns min_ns median_ns p95_ns max_ns",
        nulls="device stream",
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
    sums = gaps.group_by(*keys, "cause").agg(duration_statistics())
    total = pl.col("total_ns").sum().over(keys)
    return sums.select(
        *keys, "cause", "count", "total_ns", (pl.col("total_ns") / total).alias("share_ratio"), *_REST
    ).sort(*keys, "cause", nulls_last=True)


_REST = ("mean_ns", "min_ns", "median_ns", "p95_ns", "max_ns")
