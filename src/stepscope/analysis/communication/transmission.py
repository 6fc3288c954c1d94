"""How long transmission takes compared with the best of the same kind in the recording."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.communication.comparable_calls import OF_KIND, SAME, matched_calls, sized_calls, with_groups
from stepscope.analysis.communication.comparable_calls import Limits as SizeLimits
from stepscope.analysis.communication.exposed_calls import gained_ns
from stepscope.analysis.methods.call_positions import CALL
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.methods.step_windows import count_steps, without_unmarked
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column


@dataclass(frozen=True)
class Limits(SizeLimits):
    """What the best transmission is."""

    best_quantile: float = limit(0.1, "of the calls of a kind", "the best that recurs; single times may be wrong")
    calls: int = limit(10, "calls of a kind", "fewer show no best that recurs")
    larger_factor: float = limit(4.0, "times the size", "chosen by us: such calls are large compared with this one")
    larger_calls: int = limit(3, "calls of a kind", "chosen by us: fewer show no rate")


COLUMNS = columns(
    *OF_KIND,
    Column("members", "int32", "Number of ranks of the group seen in the calls.", importance=31),
    Column("calls", "float64", "Mean number of calls in a step.", importance=36),
    meaning("transmit_ns", "Transmission time of the median call."),
    Column("best_ns", "int64", "Best transmission that recurs in calls of this kind in all groups; null if few."),
    Column("bandwidth_bytes_per_s", "float64", "Payload (or bytes sent) over `transmit_ns`.", title="bandwidth"),
    Column("excess_ns", "int64", "Time above the best, summed over the calls of a step; null if that is unknown."),
    Column("exposed_ns", "int64", "Part of `excess_ns` by which computing would go on sooner; null if unknown."),
    Column(
        "large_bytes_per_s",
        "float64",
        "Best rate of larger calls of the operation, among as many members and hosts; null if there are none.",
        title="if large",
    ),
    Column(
        "latency_ns",
        "int64",
        "What its best transmission takes longer than its bytes at that rate, summed over the calls of a step: what "
        "many "
        "small calls cost; null as the rate.",
        title="latency",
    ),
    Column(
        "exposed_latency_ns",
        "int64",
        "Part of `latency_ns` by which computing would go on sooner; null as the rate.",
    ),
    nulls="group_name size_bytes sent_bytes best_ns excess_ns exposed_ns large_bytes_per_s latency_ns "
    "exposed_latency_ns",
)


@analysis("job", COLUMNS, whole_job=True)
def transmission(
    arrival: pl.DataFrame,
    exposed_calls: pl.DataFrame,
    groups: pl.LazyFrame | None,
    links: pl.LazyFrame | None,
    ranks: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Compare the transmission of each kind of call with the best that recurs for it in the recording.

    Calls are of one kind if operation, size and numbers of members and of their hosts are equal. The transmission of a
    call is the shortest of its members': the time from the last arrival to the first end.

    Returns:
        One row per group and kind of call, those that computing awaits longest first.
    """
    matched = without_unmarked(matched_calls(arrival))
    calls = sized_calls(matched, links, ranks, limits.alike_factor).with_columns(
        best_ns=pl.when(pl.len().over(SAME) >= limits.calls).then(
            pl.col("transmit_ns").quantile(limits.best_quantile, "lower").over(SAME)
        )
    )
    calls = calls.with_columns(excess_ns=(pl.col("transmit_ns") - pl.col("best_ns")).clip(lower_bound=0))
    calls = calls.join(_large(calls, limits), on=SAME, how="left", nulls_equal=True, maintain_order="left")
    bytes_, least = (
        pl.coalesce("size_bytes", "sent_bytes"),
        pl.coalesce("best_ns", pl.col("transmit_ns").min().over(SAME)),
    )
    at_rate = bytes_ / pl.col("large_bytes_per_s") * 1e9
    latency = rounded(pl.min_horizontal("transmit_ns", least) - at_rate).clip(lower_bound=0)
    calls = calls.with_columns(latency_ns=latency)
    awaited = awaited_parts(calls, exposed_calls).join(
        awaited_parts(calls, exposed_calls, "latency_ns").rename({"awaited": "awaited_latency"}),
        on=CALL,
        nulls_equal=True,
        maintain_order="left",
    )
    steps = count_steps().fill_null(1)
    kinds = (
        calls.join(awaited, on=CALL, how="left", maintain_order="left")
        .group_by("group", *SAME)
        .agg(
            pl.col("best_ns").first(),
            rounded(pl.col("transmit_ns").median()),
            rounded(pl.col("sent_bytes").median()),
            calls=pl.len() / steps,
            excess_ns=rounded(pl.col("excess_ns").sum() / steps),
            exposed_ns=rounded(pl.col("awaited").sum() / steps),
            large_bytes_per_s=pl.col("large_bytes_per_s").first(),
            latency_ns=rounded(pl.col("latency_ns").sum() / steps),
            exposed_latency_ns=rounded(pl.col("awaited_latency").sum() / steps),
        )
    )
    unknown = pl.col("best_ns").is_null()
    return (
        with_groups(kinds, matched, groups)
        .with_columns(
            pl.when(~unknown).then(pl.col("excess_ns", "exposed_ns")),
            pl.when(pl.col("large_bytes_per_s").is_not_null()).then(pl.col("latency_ns", "exposed_latency_ns")),
            bandwidth_bytes_per_s=pl.coalesce("size_bytes", "sent_bytes") / pl.col("transmit_ns").clip(1) * 1e9,
        )
        .select(names(COLUMNS))
        .sort(-pl.col("exposed_ns"), "group", "operation", "size_bytes", "sent_bytes", nulls_last=True)
    )


def _large(calls: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """The best rate of calls that are much larger than those of each kind (`large_bytes_per_s`)."""
    size = pl.coalesce("size_bytes", "sent_bytes").cast(pl.Float64)
    alike = ["operation", "members", "hosts"]
    kinds = calls.group_by(SAME).agg(pl.col("transmit_ns").median(), calls=pl.len(), bytes=size.median())
    rates = kinds.filter(pl.col("calls") >= limits.larger_calls, pl.col("transmit_ns") > 0).select(
        *alike, large="bytes", large_bytes_per_s=pl.col("bytes") / pl.col("transmit_ns") * 1e9
    )
    pairs = kinds.select(*SAME, "bytes").join(rates, on=alike, nulls_equal=True)
    larger = pairs.filter(pl.col("large") >= limits.larger_factor * pl.col("bytes"))
    return larger.group_by(SAME).agg(pl.col("large_bytes_per_s").max())


def awaited_parts(calls: pl.DataFrame, exposed_calls: pl.DataFrame, excess: str = "excess_ns") -> pl.DataFrame:
    """What of a part of each call computing awaits (`awaited`), on the rank of its group that gains least.

    Args:
        calls: One row a call, with `step`.
        exposed_calls: The analysis.
        excess: The column that says how much shorter each call could be; null counts as 0.
    """
    group = ["step", "group"]
    shorter = calls.select(*CALL, pl.col(excess).fill_null(0).alias("shorter_ns"))
    own = exposed_calls.join(shorter, on=CALL)
    gained = gained_ns(own, "shorter_ns").group_by(group).agg(pl.col("gained").min())
    parts = pl.col(excess).fill_null(0)
    shares = calls.select(*CALL, "step", share=parts / parts.sum().over(group))
    known = shares.join(gained, on=group, how="left", nulls_equal=True)
    return known.select(*CALL, awaited=pl.col("share").fill_nan(0.0) * pl.col("gained").fill_null(0))
