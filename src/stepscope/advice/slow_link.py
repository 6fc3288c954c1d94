"""One link slows every collective that crosses it."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.base import Finding, ms, rule
from stepscope.advice.platforms import CPU, Choices, platform_of
from stepscope.advice.units import unit_of
from stepscope.analysis.methods.statistics import median

ACTIONS: Choices = {
    (None, None): (
        "Check the link between ranks {a} and {b}: cabling and port state, error and retry counters, lane width, and "
        "whether another job shares it. If it stays slow, place the group on other devices."
    ),
    (None, CPU): (
        "Check the network between the hosts of ranks {a} and {b}: cabling and port state, error and retry counters, "
        "and whether another job shares it. If it stays slow, place the ranks on other hosts."
    ),
}


@rule("slow-link")
def slow_link(
    slow_links: pl.DataFrame,
    breakdown: pl.DataFrame,
    segments: pl.DataFrame | None,
    arrival: pl.DataFrame | None,
    ranks: pl.LazyFrame | None = None,
) -> Iterator[Finding]:
    """Name each link that `slow_links` accuses.

    The saving is the time that its transfers take beyond a typical link's, times the share of transmission that
    computing does not hide anyway.
    """
    step_ns = median(breakdown, pl.col("window_ns"))
    exposed, unit = exposed_share(segments, arrival), unit_of(breakdown)
    for row in slow_links.iter_rows(named=True):
        saving = round(row["cost_ns"] * exposed)
        a, b = row["rank_a"], row["rank_b"]
        yield Finding(
            rule="slow-link",
            summary=(
                f"Link {a}-{b} ({row['transport']}) moves {row['bandwidth_bytes_per_s'] / 1e9:.1f} GB/s, "
                f"{row['bandwidth_ratio']:.0%} of the typical link's {row['typical_bytes_per_s'] / 1e9:.1f} GB/s."
            ),
            cause=(
                f"A collective ends when its slowest link has finished; this link takes {ms(row['cost_ns'])} "
                f"longer {unit.each} than the others for the same data."
            ),
            action=platform_of(ranks, [a, b]).pick(ACTIONS).format(a=a, b=b),
            saving_ns=saving,
            saving_ratio=saving / step_ns if step_ns else 0.0,
            where={"ranks": [a, b]},
            evidence={name: row[name] for name in row if name not in ("rank_a", "rank_b")},
            per=unit.per,
        )


def exposed_share(segments: pl.DataFrame | None, arrival: pl.DataFrame | None) -> float:
    """Share of transmission that computing does not cover, on the rank that covers most; 1 where unknown.

    The rank that covers most is the one that the others wait for, so it is its exposure that the job feels.
    """
    if segments is None or arrival is None:
        return 1.0
    exposed = segments.group_by("rank").agg(exposed=pl.col("transmit_ns").sum())
    all_of_it = arrival.group_by("rank").agg(transmit=pl.col("transmit_ns").sum())
    shares = exposed.join(all_of_it.filter(pl.col("transmit") > 0), on="rank")
    least = shares.select((pl.col("exposed") / pl.col("transmit")).min()).item()
    return 1.0 if least is None else min(max(least, 0.0), 1.0)
