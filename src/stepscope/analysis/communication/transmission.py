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


COLUMNS = columns(
    *OF_KIND,
    Column("members", "int32", "Number of ranks of the group seen in the calls.", importance=31),
    Column("calls", "float64", "Mean number of calls in a step.", importance=36),
    meaning("transmit_ns", "Transmission time of the median call."),
    Column("best_ns", "int64", "Best transmission that recurs in calls of this kind in all groups; null if few."),
    Column("bandwidth_bytes_per_s", "float64", "Payload (or bytes sent) over `transmit_ns`.", title="bandwidth"),
    Column("excess_ns", "int64", "Time above the best, summed over the calls of a step; null if that is unknown."),
    Column("exposed_ns", "int64", "Part of `excess_ns` by which computing would go on sooner; null if unknown."),
    nulls="group_name size_bytes sent_bytes best_ns excess_ns exposed_ns",
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
    awaited = _awaited(calls, exposed_calls)
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
        )
    )
    unknown = pl.col("best_ns").is_null()
    return (
        with_groups(kinds, matched, groups)
        .with_columns(
            pl.when(~unknown).then(pl.col("excess_ns", "exposed_ns")),
            bandwidth_bytes_per_s=pl.coalesce("size_bytes", "sent_bytes") / pl.col("transmit_ns").clip(1) * 1e9,
        )
        .select(names(COLUMNS))
        .sort(-pl.col("exposed_ns"), "group", "operation", "size_bytes", "sent_bytes", nulls_last=True)
    )


def _awaited(calls: pl.DataFrame, exposed_calls: pl.DataFrame) -> pl.DataFrame:
    """What of the excess of each call computing awaits (`awaited`), on the rank of its group that gains least."""
    group = ["step", "group"]
    own = exposed_calls.join(calls.select(*CALL, "excess_ns"), on=CALL).with_columns(pl.col("excess_ns").fill_null(0))
    gained = gained_ns(own, "excess_ns").group_by(group).agg(pl.col("gained").min())
    shares = calls.select(*CALL, "step", share=pl.col("excess_ns") / pl.col("excess_ns").sum().over(group))
    known = shares.join(gained, on=group, how="left", nulls_equal=True)
    return known.select(*CALL, awaited=pl.col("share").fill_nan(0.0) * pl.col("gained").fill_null(0))
