"""Calls between hosts that take seconds, as when packets are lost and sent again."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.finding import CUDA, NPU, Finding, per_of, saved
from stepscope.advice.messages import Choices, Message, Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.replayed import at_most, item_ns
from stepscope.analysis.communication.retransmissions import LONG, LONG_RDMA, RETRIED
from stepscope.analysis.replay.call_savings import RETRANSMITTED

_MOST_NAMED = 3
_SHOWN = ("transmit_ns", "typical_ns", "rdma_bytes_per_s")

_LONG = Text(
    "{calls:count call|calls} between hosts {calls:one takes|take} up to {transmit_ns:duration} to transmit"
    "[ ({steps:steps})][, against {typical_ns:duration} usually].",
    "主机之间有 {calls} 次通信的传输耗时长达 {transmit_ns:duration}[（{steps:steps}）][，通常为 "
    "{typical_ns:duration}]。",
)
_NAMES = Text(" The calls: {names:list}[ and {more} more].", "涉及：{names:list}[，另有 {more} 次]。")
_PORTS = Text(
    "[ Network ports of {ports:ranks} count errors or dropped packets.]", "[{ports:ranks} 的网口有错误或丢包计数。]"
)
_CHECK: Choices = {
    (None, NPU): Text(
        "Check the network between these hosts (links, switches, PFC and ECN, `hccn_tool -i ID -stat -g`), and unset "
        "HCCL_RDMA_TC and HCCL_RDMA_SL unless the network needs them. A wrong address or a damaged link may need the "
        "provider.",
        "检查这些主机之间的网络（链路、交换机、PFC 与 ECN，`hccn_tool -i ID -stat -g`），"
        "若网络无特别要求则取消 HCCL_RDMA_TC 和 HCCL_RDMA_SL。地址冲突或链路损坏可能需要联系服务方。",
    ),
    (None, CUDA): Text(
        "Check the network between these hosts: error and retry counters of the ports (`ibqueryerrors`, `ethtool -S`), "
        "PFC and ECN. See retries with NCCL_DEBUG=INFO; NCCL_IB_TIMEOUT sets how long a lost packet costs.",
        "检查这些主机之间的网络：端口的错误与重传计数（`ibqueryerrors`、`ethtool -S`）、PFC 与 ECN。"
        "用 NCCL_DEBUG=INFO 查看重传；NCCL_IB_TIMEOUT 决定一次丢包的代价。",
    ),
    (None, None): Text(
        "Check the network between these hosts: error, drop and retry counters of ports and switches.",
        "检查这些主机之间的网络：网口和交换机的错误、丢包与重传计数。",
    ),
}

MESSAGES = {
    LONG_RDMA: Message(
        summary=_LONG,
        cause=Text(
            "Nearly all of it is transfer over RDMA[, at {rdma_bytes_per_s:size}/s]: packets were lost and sent "
            "again, which costs seconds each time.",
            "几乎全部是 RDMA 传输[，速率 {rdma_bytes_per_s:size}/s]：数据包丢失后重传，每次代价为数秒。",
        )
        + _NAMES
        + _PORTS,
        action=_CHECK,
    ),
    LONG: Message(
        summary=_LONG,
        cause=Text(
            "No rank arrived late and the size does not explain it: packets may have been lost and sent again. What "
            "went over which link is not recorded.",
            "没有 rank 晚到，数据量也不能解释：可能是数据包丢失后重传。未记录各链路的传输。",
        )
        + _NAMES
        + _PORTS,
        action=_CHECK,
    ),
    RETRIED: Message(
        summary=Text(
            "{calls:count call was|calls were} tried again by the communication library[ ({steps:steps})]; the "
            "longest takes {transmit_ns:duration}[, against {typical_ns:duration} usually].",
            "通信库重新执行了 {calls} 次通信[（{steps:steps}）]；最长的一次耗时 {transmit_ns:duration}"
            "[，通常为 {typical_ns:duration}]。",
        ),
        cause=Text(
            "The recording marks them as retried, which it does after an error of the network.",
            "记录将其标为重试，这发生在网络出错之后。",
        )
        + _NAMES
        + _PORTS,
        action=_CHECK,
    ),
}
"""By what shows it (`retransmissions.sign`)."""

PORTS = r"^(?:roce|nic)_.*_(?:errors|dropped)$"
"""Counters of network ports that stay at 0 on a sound network."""

_CONFIDENCE = {RETRIED: "certain", LONG_RDMA: "likely", LONG: "possible"}


@rule(
    "retransmission",
    MESSAGES,
    whole_job=True,
    claim=Claim(Turn.STOPPED, "communication"),
    dimension="communication",
    computed=Text(
        "Calls whose transmission between hosts takes at least 4 s on all ranks and twice as long as usual, or that "
        "the recording marks as retried. The saving is what they take longer than usual, on the rank that loses most, "
        "as far as no computing covers it, spread over all steps; at most what a replay of the job without it saves.",
        "主机间传输在所有 rank 上都不少于 4 秒且达到通常的两倍，或被记录标为重试的通信。"
        "节省为其超出通常耗时且未被计算掩盖的部分（取损失最多的 rank），平均到所有步，且不超过去掉它后重放作业所得。",
    ),
    shows=("retransmissions",),
    explains=("long-step", "slow-link", "slow-group", "exposed-communication"),
)
def retransmission(
    retransmissions: pl.DataFrame,
    breakdown: pl.DataFrame | None = None,
    counters: pl.LazyFrame | None = None,
    call_savings: pl.DataFrame | None = None,
) -> Iterator[Finding]:
    """Report calls that show that packets were sent again (`retransmissions`), once for each sign of it."""
    if retransmissions.is_empty():
        return
    ports, left_ns = _bad_ports(counters), item_ns(RETRANSMITTED, call_savings)
    for sign in MESSAGES:
        rows = retransmissions.filter(pl.col("sign") == sign)
        if rows.is_empty():
            continue
        calls = rows.unique(["group", "step", "name"], keep="first", maintain_order=True)
        worst = calls.sort(-pl.col("transmit_ns"), maintain_order=True).row(0, named=True)
        saving, ratio, count = _saving(rows, breakdown)
        per = "recording" if breakdown is None else per_of(breakdown)
        names = calls["name"].unique(maintain_order=True).to_list()
        found = Finding(
            rule="retransmission",
            message=sign,
            parameters={
                "calls": calls.height,
                "names": names[:_MOST_NAMED],
                "more": max(len(names) - _MOST_NAMED, 0) or None,
                "steps": calls["step"].drop_nulls().unique().sort().to_list() or None,
                "ports": ports or None,
                **{name: worst[name] for name in _SHOWN if name != "rdma_bytes_per_s" or sign == LONG_RDMA},
            },
            saving_ns=saved(per, saving / count, count),
            saving_ratio=ratio,
            per=per,
            where={
                "ranks": rows["rank"].unique().sort().to_list(),
                "steps": calls["step"].drop_nulls().unique().sort().to_list(),
                "operators": names,
            },
            evidence={
                **{name: worst[name] for name in ("transmit_ns", "typical_ns", "excess_ns", "rdma_ns", "rdma_bytes")},
                "calls": calls.height,
            },
            least="medium",
            confidence=_CONFIDENCE[sign],  # type: ignore[arg-type]
            span_ns=(worst["start_ns"], worst["start_ns"] + worst["duration_ns"]),
            span_rank=worst["rank"],
        )
        if left_ns is not None and found.saving_ns:
            found = at_most(found, left_ns)
            left_ns -= found.saving_ns
        yield found


def _saving(rows: pl.DataFrame, breakdown: pl.DataFrame | None) -> tuple[int, float, int]:
    """What the calls of the rank that loses most took longer in all steps, the same over the recorded time, and the
    number of steps."""
    if breakdown is None or breakdown.is_empty():
        return 0, 0.0, 1
    excess = rows.group_by("rank", "step").agg(pl.col("excess_ns").sum())
    bare = breakdown.select("rank", "step", "communication_not_overlapped_ns")
    lost = excess.join(bare, on=["rank", "step"]).with_columns(
        pl.min_horizontal("excess_ns", "communication_not_overlapped_ns")
    )
    of_rank = lost.group_by("rank").agg(pl.col("excess_ns").sum())
    recorded = breakdown.group_by("rank").agg(pl.col("window_ns").sum(), steps=pl.len())
    worst = of_rank.join(recorded, on="rank").sort(-pl.col("excess_ns"), "rank").head(1)
    if worst.is_empty():
        return 0, 0.0, 1
    row = worst.row(0, named=True)
    return row["excess_ns"], row["excess_ns"] / max(row["window_ns"], 1), row["steps"]


def _bad_ports(counters: pl.LazyFrame | None) -> list[int]:
    """Ranks whose network ports count errors or dropped packets."""
    if counters is None:
        return []
    bad = counters.filter(pl.col("name").str.contains(PORTS) & (pl.col("value") > 0))
    return bad.select(pl.col("rank").unique().sort()).collect()["rank"].to_list()
