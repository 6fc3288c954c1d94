"""One or several ranks hold all others up."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.finding import Finding
from stepscope.advice.platforms import platform_of
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.rules.slow_rank_words import MESSAGES
from stepscope.advice.units import per_of


@rule("slow-rank", MESSAGES, accuses=True, claim=Claim(Turn.SEEN_LATE, time_in="kind"))
def slow_rank(
    slow_ranks: pl.DataFrame, breakdown: pl.DataFrame, ranks: pl.LazyFrame | None = None
) -> Iterator[Finding]:
    """Report each rank in `slow_ranks`.

    The saving is the time per step that the job loses because of it (`cost_ns`): its share if several ranks are slow,
    when fixing one alone may save nothing.
    """
    if breakdown.is_empty():
        return
    worst: int | None = None
    others = slow_ranks["rank"].n_unique() - 1
    for row in slow_ranks.iter_rows(named=True):
        kind, rank, cost_ns = row["kind"], row["rank"], row["cost_ns"]
        worst = rank if worst is None else worst
        hidden = row["calls"] and not row["times_last"] and rank != worst
        yield Finding(
            rule="slow-rank",
            message=kind,
            parameters={
                "rank": rank,
                "excess_ns": row["excess_ns"],
                "excess_ratio": row["excess_ns"] * row["cost_ratio"] / cost_ns if cost_ns else None,
                "own_ns": row["typical_ns"] + row["excess_ns"],
                "typical_ns": row["typical_ns"],
                "times_last": row["times_last"] if row["calls"] else None,
                "calls": row["calls"],
                "masked_by": worst if hidden else None,
                "others": others or None,
            },
            saving_ns=cost_ns,
            saving_ratio=row["cost_ratio"],
            saving_low_ns=0 if others else cost_ns,
            saving_high_ns=max(cost_ns, row["excess_ns"]),
            per=per_of(breakdown),
            where={"rank": rank},
            evidence={name: row[name] for name in row if name not in ("rank", "cost_ns", "cost_ratio")},
            platform=platform_of(ranks, [rank]),
        )
