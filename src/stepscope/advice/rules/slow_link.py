"""Links, interfaces or hosts slow every collective that crosses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from stepscope.advice.finding import CPU, Finding, per_of, widened
from stepscope.advice.messages import Message, Text
from stepscope.advice.occurrence import late_steps, pattern_words
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.replayed import OFF, replay_error
from stepscope.analysis.rank_lists import listed

_BASIS = (
    Text(
        "{replayed:one from the lower to the upper quartile of what a replay of the job saves if these links are as "
        "fast as typical ones|an upper bound, as it is unknown what waits for these transfers}, and at least 5% "
        "either way",
        "{replayed:one 这些链路与典型链路一样快时，作业重放所节省时间的下四分位到上四分位|"
        "上限，因为不知道哪些工作在等待这些传输}，且至少 ±5%",
    )
    + OFF
)

WHEN = Text(
    "[ {when:when}][ since {slow_since:steps}][ until {slow_until:steps}]",
    "[（{when:when}）][（自{slow_since:steps}起）][（直到{slow_until:steps}）]",
)

_CHECK_LINK = Text(
    "Check the link between ranks {ranks}: cabling and port state, error and retry counters, "
    "lane width, and whether another job shares it. If it stays slow, place the group on other devices.",
    "检查 rank {ranks} 之间的链路：线缆和端口状态、错误与重传计数、通道宽度，"
    "以及是否有其他作业共用。若仍然慢，把该通信组放到其他设备上。",
)
_SLOWEST = Text(
    "A call ends when its slowest link has finished: {links:one this one takes|these take} {cost_ns:ms} longer "
    "{per:each} than the others for the same data.",
    "一次通信要等最慢的链路完成才结束：同样的数据，{links:one 这条|这些}链路{per:each}比其他链路多用 {cost_ns:ms}。",
)
_RATE = (
    Text(
        " {bandwidth:giga} GB/s, {bandwidth_ratio:percent} of the typical {typical_bandwidth:giga} GB/s",
        " {bandwidth:giga} GB/s，是典型值 {typical_bandwidth:giga} GB/s 的 {bandwidth_ratio:percent}",
    )
    + WHEN
    + Text(".", "。")
)


def _check_nic(attached: str) -> Text:
    return Text(
        "Check what all links of rank {rank_a} share: its network interface or port, cable and switch "
        f"port, error and retry counters, {attached}NUMA placement. If it stays slow, use another host.",
        "检查 rank {rank_a} 的所有链路共用的部分：网络接口或端口、线缆和交换机端口、错误与重传计数、"
        f"{attached.replace(', ', '、').replace('lane width', '通道宽度')}NUMA 位置。若仍然慢，换用其他主机。",
    )


MESSAGES = {
    "slow": Message(
        summary=Text(
            "Link {rank_a}-{rank_b} ({transport}) moves {bandwidth:giga} GB/s, {bandwidth_ratio:percent} of the "
            "typical link's {typical_bandwidth:giga} GB/s",
            "链路 {rank_a}-{rank_b}（{transport}）的带宽为 {bandwidth:giga} GB/s，是典型链路 "
            "{typical_bandwidth:giga} GB/s 的 {bandwidth_ratio:percent}",
        )
        + WHEN
        + Text(".", "。"),
        short=Text(
            "link {rank_a}-{rank_b} has {bandwidth_ratio:percent} of the typical bandwidth",
            "链路 {rank_a}-{rank_b} 只有典型带宽的 {bandwidth_ratio:percent}",
        )
        + WHEN,
        cause=_SLOWEST,
        action={
            (None, None): _CHECK_LINK,
            (None, CPU): Text(
                "Check the network between the hosts of ranks {ranks}: cabling and port state, error and "
                "retry counters, and whether another job shares it. If it stays slow, place the ranks on other hosts.",
                "检查 rank {ranks} 所在主机之间的网络：线缆和端口状态、错误与重传计数，"
                "以及是否有其他作业共用。若仍然慢，把这些 rank 放到其他主机上。",
            ),
        },
        basis=_BASIS,
    ),
    "nic": Message(
        summary=Text(
            "All {links} {transport} links of rank {rank_a} are slow: they move",
            "rank {rank_a} 的全部 {links} 条 {transport} 链路都慢：带宽为",
        )
        + _RATE,
        short=Text(
            "the network interface of rank {rank_a} has {bandwidth_ratio:percent} of the typical bandwidth",
            "rank {rank_a} 的网络接口只有典型带宽的 {bandwidth_ratio:percent}",
        )
        + WHEN,
        cause=_SLOWEST,
        action={(None, None): _check_nic("lane width, PCIe, "), (None, CPU): _check_nic("")},
        basis=_BASIS,
    ),
    "host": Message(
        summary=Text(
            "All {links} {transport} links of host {host} (ranks {ranks}) are slow: they move",
            "主机 {host}（rank {ranks}）的全部 {links} 条 {transport} 链路都慢：带宽为",
        )
        + _RATE,
        short=Text(
            "the links of host {host} have {bandwidth_ratio:percent} of the typical bandwidth",
            "主机 {host} 的链路只有典型带宽的 {bandwidth_ratio:percent}",
        )
        + WHEN,
        cause=_SLOWEST,
        action=Text(
            "Check what all links of host {host} share: its uplink and switch, settings of the network (packet size, "
            "flow control, topology), and whether another job uses them. If it stays slow, use another host.",
            "检查主机 {host} 的所有链路共用的部分：上行链路和交换机、网络设置（包长、流控、拓扑），"
            "以及是否有其他作业共用。若仍然慢，换用其他主机。",
        ),
        basis=_BASIS,
    ),
    "hosts": Message(
        summary=Text(
            "The {links} {transport} links between hosts {host} (ranks {ranks}) are slow: they move",
            "主机 {host}（rank {ranks}）之间的 {links} 条 {transport} 链路都慢：带宽为",
        )
        + _RATE,
        short=Text(
            "the links between hosts {host} have {bandwidth_ratio:percent} of the typical bandwidth",
            "主机 {host} 之间的链路只有典型带宽的 {bandwidth_ratio:percent}",
        )
        + WHEN,
        cause=_SLOWEST,
        action=Text(
            "Check what the way between hosts {host} has that others do not: cables, ports and uplinks of the switches "
            "between them, their error counters, the route that is chosen, and other jobs that use it. If it stays "
            "slow, place the group on other hosts.",
            "检查主机 {host} 之间的路径特有的部分：线缆、途经交换机的端口和上行链路、错误计数、所选路由，"
            "以及使用它的其他作业。若仍然慢，把该通信组放到其他主机上。",
        ),
        basis=_BASIS,
    ),
    "links": Message(
        summary=Text(
            "{links} {transport} links among ranks {ranks} are slow: they move",
            "rank {ranks} 之间的 {links} 条 {transport} 链路较慢：带宽为",
        )
        + _RATE,
        short=Text(
            "{links} links among ranks {ranks} have {bandwidth_ratio:percent} of the typical bandwidth",
            "rank {ranks} 之间的 {links} 条链路只有典型带宽的 {bandwidth_ratio:percent}",
        )
        + WHEN,
        cause=_SLOWEST,
        action=Text(
            "Each of these links alone costs little, as the others are as slow: check what they share, such as a "
            "switch, its uplinks and the routes through it, and whether another job uses it.",
            "单独改善其中一条收效甚微，因为其他几条同样慢：检查它们共用的部分，如交换机、上行链路和路由，"
            "以及是否有其他作业共用。",
        ),
        basis=_BASIS,
    ),
}
"""By `slow_links.unit`; a link is `slow`."""

_FIGURES = ("transport", "links", "bandwidth_ratio", "cost_ns")
_NAMED = {
    "link": ("rank_a", "rank_b", "ranks"),
    "nic": ("rank_a",),
    "host": ("host", "ranks"),
    "hosts": ("host", "ranks"),
    "links": ("ranks",),
}
"""What says which link, interface or host it is."""
_SUMMED = ("cost_ns", "saving", "links", "saving_low_ns", "saving_high_ns")
_NOT_EVIDENCE = ("rank_a", "rank_b", "saving", "saving_low_ns", "saving_high_ns")


@rule(
    "slow-link",
    MESSAGES,
    accuses=True,
    whole_job=True,
    claim=Claim(Turn.SEEN_LATE, time="communication"),
    dimension="communication",
    computed=Text(
        "Compares the bandwidth of each link with other links of its transport for transfers of that "
        "size, and names the smallest end that explains it: link, network interface or host. The saving "
        "is its share of what a replay with typical links saves; without a replay, the extra time of its "
        "transfers times the exposed share of transmission.",
        "按同样大小的传输，将每条链路的带宽与同类链路比较，并指出能解释差异的最小单位：链路、网卡或主机。"
        "节省为重放中链路恢复典型速度所得的份额；没有重放时，为其传输多出的时间乘以传输的未掩盖比例。",
    ),
    shows=("slow_links",),
)
def slow_link(
    slow_links: pl.DataFrame,
    breakdown: pl.DataFrame,
    segments: pl.DataFrame | None,
    arrival: pl.DataFrame | None,
) -> Iterator[Finding]:
    """Report each link, interface or host in `slow_links`, unless it is known that nothing waits for it.

    The saving is its share of what a replay saves with typical links. If there is no replay, it is the extra time of
    its transfers, times the exposed share of transmission.
    """
    step_ns = breakdown.select(pl.col("window_ns").mean()).item()  # as savings are those of the mean step
    exposed, per = exposed_share(segments, arrival), per_of(breakdown)
    # One finding about an interface or host, whatever transports it slows down; the one that costs most tells how much.
    units = slow_links.with_columns(
        saving=pl.coalesce("exposed_ns", (pl.col("cost_ns") * exposed).round().cast(pl.Int64))
    ).with_columns(pl.col(_SUMMED).sum().over(_SAME), transport=_transports())
    for row in units.unique(_SAME, keep="first", maintain_order=True).iter_rows(named=True):
        saving, replayed = row["saving"], row["exposed_ns"] is not None
        if replayed and not saving:
            continue
        yield Finding(
            rule="slow-link",
            message="slow" if row["unit"] == "link" else row["unit"],
            parameters={
                **{name: row[name] for name in (*_FIGURES, *_NAMED[row["unit"]])},
                **pattern_words(row, per),
                "bandwidth": row["bandwidth_bytes_per_s"],
                "typical_bandwidth": row["typical_bytes_per_s"],
                "replayed": 1 if replayed else 2,
                "error_ratio": replay_error(row),
            },
            saving_ns=saving,
            saving_ratio=saving / step_ns if step_ns else 0.0,
            **widened(saving, *((row["saving_low_ns"], row["saving_high_ns"]) if replayed else (0, row["cost_ns"]))),
            replayed=replayed,
            per=per,
            where={"ranks": listed(row["ranks"]), **_links(row), **late_steps(row)},
            evidence={name: row[name] for name in slow_links.columns if name not in _NOT_EVIDENCE},
            most="high" if replayed else "medium",
        )


_SAME = ["unit", "ranks"]


def _transports() -> pl.Expr:
    """The transports of a unit, e.g. `HCCS, RDMA`."""
    return pl.col("transport").str.join(", ").over(_SAME, order_by="transport")


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


def _links(row: Mapping[str, Any]) -> dict[str, Any]:
    """The pair of ranks, if a single link is slow."""
    return {"links": [[row["rank_a"], row["rank_b"]]]} if row["unit"] == "link" else {}
