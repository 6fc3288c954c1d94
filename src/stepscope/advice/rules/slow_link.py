"""One link slows every collective that crosses it."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.finding import CPU, Finding, per_of
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.analysis.methods.statistics import median

EXPOSED = Text(
    "between the share of its transmission that computing leaves exposed where it hides most, and all of it",
    "下限为计算掩盖最多时仍暴露的那部分传输，上限为全部传输",
)

MESSAGES = {
    "slow": Message(
        summary=Text(
            "Link {rank_a}-{rank_b} ({transport}) moves {bandwidth:giga} GB/s, {bandwidth_ratio:percent} of the "
            "typical link's {typical_bandwidth:giga} GB/s.",
            "链路 {rank_a}-{rank_b}（{transport}）的带宽为 {bandwidth:giga} GB/s，是典型链路 "
            "{typical_bandwidth:giga} GB/s 的 {bandwidth_ratio:percent}。",
        ),
        short=Text(
            "link {rank_a}-{rank_b} has {bandwidth_ratio:percent} of the typical bandwidth",
            "链路 {rank_a}-{rank_b} 只有典型带宽的 {bandwidth_ratio:percent}",
        ),
        cause=Text(
            "A collective ends when its slowest link has finished: this one takes {cost_ns:ms} longer {per:each} than "
            "the others for the same data.",
            "集合通信要等最慢的链路完成才结束：同样的数据，这条链路{per:each}比其他链路多用 {cost_ns:ms}。",
        ),
        action={
            (None, None): Text(
                "Check the link between ranks {rank_a} and {rank_b}: cabling and port state, error and retry counters, "
                "lane width, and whether another job shares it. If it stays slow, place the group on other devices.",
                "检查 rank {rank_a} 与 rank {rank_b} 之间的链路：线缆和端口状态、错误与重传计数、通道宽度，"
                "以及是否有其他任务共用。若仍然慢，把该通信组放到其他设备上。",
            ),
            (None, CPU): Text(
                "Check the network between the hosts of ranks {rank_a} and {rank_b}: cabling and port state, error and "
                "retry counters, and whether another job shares it. If it stays slow, place the ranks on other hosts.",
                "检查 rank {rank_a} 与 rank {rank_b} 所在主机之间的网络：线缆和端口状态、错误与重传计数，"
                "以及是否有其他任务共用。若仍然慢，把这些 rank 放到其他主机上。",
            ),
        },
        basis=EXPOSED,
    )
}

_ENDS = ("rank_a", "rank_b")


@rule("slow-link", MESSAGES, accuses=True, whole_job=True)
def slow_link(
    slow_links: pl.DataFrame,
    breakdown: pl.DataFrame,
    segments: pl.DataFrame | None,
    arrival: pl.DataFrame | None,
) -> Iterator[Finding]:
    """Report each link in `slow_links`.

    The saving is the extra time of its transfers compared with a typical link, times the exposed share of transmission.
    """
    step_ns = median(breakdown, pl.col("window_ns"))
    exposed, per = exposed_share(segments, arrival), per_of(breakdown)
    for row in slow_links.iter_rows(named=True):
        saving = round(row["cost_ns"] * exposed)
        yield Finding(
            rule="slow-link",
            message="slow",
            parameters={
                **{name: row[name] for name in (*_ENDS, "transport", "bandwidth_ratio", "cost_ns")},
                "bandwidth": row["bandwidth_bytes_per_s"],
                "typical_bandwidth": row["typical_bytes_per_s"],
            },
            saving_ns=saving,
            saving_ratio=saving / step_ns if step_ns else 0.0,
            saving_high_ns=max(round(row["cost_ns"]), saving),
            per=per,
            where={"ranks": [row[end] for end in _ENDS]},
            evidence={name: row[name] for name in row if name not in _ENDS},
        )


def exposed_share(segments: pl.DataFrame | None, arrival: pl.DataFrame | None) -> float:
    """Exposed share of transmission on the rank that hides most; 1 if unknown.

    The rank that hides most is the one that the others wait for, so its exposure determines the job's.
    """
    if segments is None or arrival is None:
        return 1.0
    exposed = segments.group_by("rank").agg(exposed=pl.col("transmit_ns").sum())
    all_of_it = arrival.group_by("rank").agg(transmit=pl.col("transmit_ns").sum())
    shares = exposed.join(all_of_it.filter(pl.col("transmit") > 0), on="rank")
    least = shares.select((pl.col("exposed") / pl.col("transmit")).min()).item()
    return 1.0 if least is None else min(max(least, 0.0), 1.0)
