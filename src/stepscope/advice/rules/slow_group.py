"""One process group transmits more slowly than comparable ones."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.finding import Finding, per_of, widened
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.advice.rules.slow_link import EXPOSED, exposed_share
from stepscope.analysis.methods.statistics import median
from stepscope.analysis.rank_lists import listed

_TAKES = Text(
    "roup {group} (ranks {ranks}) takes {slowdown_factor:number .1f}x as long to transmit as comparable groups",
    "通信组 {group}（rank {ranks}）的传输时间是同类通信组的 {slowdown_factor:number .1f} 倍",
)

MESSAGES = {
    "slow": Message(
        summary=Text("G", "") + _TAKES + Text(".", "。"),
        short=Text("g", "") + _TAKES,
        cause=Text(
            "Some link between these ranks is slow: their calls take {cost_ns:ms} longer {per:each}.",
            "这些 rank 之间有链路较慢：它们的通信调用{per:each}多用 {cost_ns:ms}。",
        ),
        action=Text(
            "Check the links between these ranks: port state, error and retry counters, switches between them.",
            "检查这些 rank 之间的链路：端口状态、错误与重传计数、途经的交换机。",
        ),
        basis=EXPOSED,
    )
}


@rule("slow-group", MESSAGES, accuses=True, whole_job=True)
def slow_group(
    slow_groups: pl.DataFrame,
    breakdown: pl.DataFrame,
    slow_links: pl.DataFrame | None,
    segments: pl.DataFrame | None,
    arrival: pl.DataFrame | None,
) -> Iterator[Finding]:
    """Report each group in `slow_groups`, unless its slow link is already reported.

    The saving is the extra time of its calls per step compared with the typical group, unless hidden by computing.
    """
    if slow_links is not None and not slow_links.is_empty():
        return
    step_ns = median(breakdown, pl.col("window_ns"))
    exposed, per = exposed_share(segments, arrival), per_of(breakdown)
    totals = slow_groups.group_by("group", "group_name", "ranks", maintain_order=True).agg(
        pl.col("cost_ns").sum(), pl.col("slowdown_factor").max()
    )
    for row in totals.iter_rows(named=True):
        saving = round(row["cost_ns"] * exposed)
        evidence = {"cost_ns": row["cost_ns"], "slowdown_factor": row["slowdown_factor"]}
        yield Finding(
            rule="slow-group",
            message="slow",
            parameters={"group": row["group_name"] or row["group"], "ranks": row["ranks"], **evidence},
            saving_ns=saving,
            saving_ratio=saving / step_ns if step_ns else 0.0,
            **widened(saving, saving, row["cost_ns"]),
            per=per,
            where={
                **{name: row[name] for name in ("group", "group_name")},
                "ranks": listed(row["ranks"]),
            },
            evidence=evidence,
        )
