"""One process group transmits more slowly than its like."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.base import Finding, ms, rule
from stepscope.advice.slow_link import exposed_share
from stepscope.advice.units import unit_of
from stepscope.analysis.methods.statistics import median


@rule("slow-group")
def slow_group(
    slow_groups: pl.DataFrame,
    breakdown: pl.DataFrame,
    slow_links: pl.DataFrame | None,
    segments: pl.DataFrame | None,
    arrival: pl.DataFrame | None,
) -> Iterator[Finding]:
    """Name each group that `slow_groups` accuses, unless its slow link is already named.

    The saving is what its calls take beyond the typical group's in a step, as far as computing does not hide it.
    """
    if slow_links is not None and not slow_links.is_empty():
        return
    step_ns = median(breakdown, pl.col("window_ns"))
    exposed, unit = exposed_share(segments, arrival), unit_of(breakdown)
    totals = slow_groups.group_by("group", "group_name", "ranks", maintain_order=True).agg(
        pl.col("cost_ns").sum(), pl.col("slowdown_factor").max()
    )
    for row in totals.iter_rows(named=True):
        saving = round(row["cost_ns"] * exposed)
        yield Finding(
            rule="slow-group",
            summary=(
                f"Group {row['group_name'] or row['group']} (ranks {row['ranks']}) takes {row['slowdown_factor']:.1f} "
                "times as long to transmit as other groups that send the same."
            ),
            cause=f"Some link between these ranks is slow: their calls take {ms(row['cost_ns'])} longer {unit.each}.",
            action="Check the links between these ranks: port state, error and retry counters, switches between them.",
            saving_ns=saving,
            saving_ratio=saving / step_ns if step_ns else 0.0,
            where={"group": row["group"], "group_name": row["group_name"], "ranks": row["ranks"]},
            evidence={"cost_ns": row["cost_ns"], "slowdown_factor": row["slowdown_factor"]},
            per=unit.per,
        )
