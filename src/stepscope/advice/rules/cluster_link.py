"""Links that are slower than those of their transport on average."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.finding import Finding
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.advice.rules.cluster_facts import PERCENT, by_formula, facts, stated
from stepscope.analysis.job.cluster_advice import LINK
from stepscope.analysis.rank_lists import listed

MESSAGES = {
    "slow": Message(
        summary=Text(
            "Link {source}-{destination}[ ({transport})] moves {bandwidth:giga} GB/s, {off:number .2f}% below the "
            "mean of {mean_of} links[; {others:count other link is|other links are} below it as well].",
            "链路 {source}-{destination}[（{transport}）]的带宽为 {bandwidth:giga} GB/s，比 {mean_of} 条链路的平均低 "
            "{off:number .2f}%[；另有 {others} 条链路也低于界限]。",
        ),
        cause=by_formula(
            Text(
                "Bandwidth is bytes over time, so links that move little are slow by latency.[ By the sum of the rates "
                "of its calls, as MindInsight has it, it is {summed:number .2f}% below the mean.]",
                "带宽按字节数除以时间计算，因此数据量小的链路会因时延而显得慢。"
                "[若如 MindInsight 把各次调用的速率相加，则比平均低 {summed:number .2f}%。]",
            )
        ),
        action=Text(
            "See «`stepscope links`» for what each link moves. If one that moves as much as others is slow, check its "
            "cabling, port state and error counters.",
            "用 «`stepscope links`» 查看每条链路的数据量。若数据量与其他链路相当却较慢，检查线缆、端口状态和错误计数。",
        ),
    )
}


@rule(
    "cluster-link",
    MESSAGES,
    whole_job=True,
    dimension="communication",
    computed=Text(
        "Compares the bandwidth of each link with the mean of the links of its transport by the formula "
        "of MindSpore Insight, and states the slowest link of each transport. A distance from a mean "
        "shows no cost, so no saving is claimed.",
        "按 MindSpore Insight 的公式，将每条链路的带宽与同类传输链路的平均值比较，并列出每类中最慢的链路。"
        "与平均值的差距不等于代价，因此不计节省。",
    ),
    shows=("cluster_advice", "link_totals"),
)
def cluster_link(
    communication_totals: pl.LazyFrame, cluster_advice: pl.DataFrame, slow_links: pl.DataFrame | None
) -> Iterator[Finding]:
    """State the slowest link of each transport (`cluster_link` of MindSpore Insight) if the profile states what
    communication costs, unless `slow_links` names it already."""
    known = communication_totals.select(pl.len()).collect().item()
    rows = [row for row in facts(cluster_advice, LINK) if known and not _is_named(row, slow_links)]
    for transport in dict.fromkeys(row["transport"] for row in rows):
        worst, *others = [row for row in rows if row["transport"] == transport]
        summed = worst["summed_ratio"]
        yield stated(
            "cluster-link",
            "slow",
            worst,
            [worst["source"], worst["destination"]],
            **{name: worst[name] for name in ("source", "destination", "transport")},
            bandwidth=worst["bandwidth_bytes_per_s"],
            summed=None if summed is None else summed * PERCENT,
            others=len(others) or None,
        )


def _is_named(row: dict[str, object], slow_links: pl.DataFrame | None) -> bool:
    """Whether the ends of a link are among the ranks of a slow link, interface or host."""
    if slow_links is None:
        return False
    return any({row["source"], row["destination"]} <= {*listed(ranks)} for ranks in slow_links["ranks"])
