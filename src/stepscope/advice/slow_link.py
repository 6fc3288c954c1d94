"""One link slows every collective that crosses it."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.base import Finding, ms, rule


@rule("slow-link")
def slow_link(slow_links: pl.DataFrame, breakdown: pl.DataFrame) -> Iterator[Finding]:
    """Name each link that `slow_links` accuses.

    The saving is the time that its transfers take beyond a typical link's, but at most what the job's median rank
    spends in communication that computing does not cover.
    """
    exposed = breakdown.select(pl.col("communication_not_overlapped_ns").median()).item() or 0
    step_ns = breakdown.select(pl.col("window_ns").median()).item() or 0
    for row in slow_links.iter_rows(named=True):
        saving = round(min(row["cost_ns"], exposed))
        a, b = row["rank_a"], row["rank_b"]
        yield Finding(
            rule="slow-link",
            summary=(
                f"Link {a}-{b} ({row['transport']}) moves {row['bandwidth_bytes_per_s'] / 1e9:.1f} GB/s, "
                f"{row['bandwidth_ratio']:.0%} of the typical link's {row['typical_bytes_per_s'] / 1e9:.1f} GB/s."
            ),
            cause=(
                f"A collective ends when its slowest link has finished; this link takes {ms(row['cost_ns'])} a step "
                "longer than the others for the same data."
            ),
            action=(
                f"Check the link between ranks {a} and {b}: cabling and port state, error and retry counters, lane "
                "width, and whether another job shares it. If it stays slow, place a group across other devices."
            ),
            saving_ns=saving,
            saving_ratio=saving / step_ns if step_ns else 0.0,
            where={"ranks": [a, b]},
            evidence={name: row[name] for name in row if name not in ("rank_a", "rank_b")},
        )
