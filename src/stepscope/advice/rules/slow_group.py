"""One process group, or pair of ranks, transmits more slowly than comparable ones, or than usual in some steps."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.finding import CPU, Finding, per_of, widened
from stepscope.advice.messages import Choices, Message, Text
from stepscope.advice.occurrence import late_steps, pattern_words
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.replayed import OFF, replay_error
from stepscope.advice.rules.slow_link import WHEN, exposed_share
from stepscope.analysis.rank_lists import listed

_BASIS = (
    Text(
        "{replayed:one from the lower to the upper quartile of what a replay of the job saves if these calls take as "
        "long as typical ones|an upper bound, as it is unknown what waits for these calls}, and at least 5% either "
        "way",
        "{replayed:one 这些调用与典型调用一样快时，作业重放所节省时间的下四分位到上四分位|"
        "上限，因为不知道哪些工作在等待这些调用}，且至少 ±5%",
    )
    + OFF
)
_LINKS = Text(
    "Check the links between these ranks: port state, error and retry counters, switches between them.",
    "检查这些 rank 之间的链路：端口状态、错误与重传计数、途经的交换机。",
)
_PROCESSORS = Text(
    "Find what else ran on the processors of these ranks, which move the data: other processes, more threads than "
    "cores; between hosts, also check the network between them.",
    "数据由处理器搬运：查找这些 rank 的处理器上还运行了什么（其他进程、线程数多于核数）；主机之间还要检查网络。",
)
_TIMES = Text(
    "Find what else used the network or its switches in these {per:nouns}: another job, a checkpoint, data that is "
    "loaded over it; and look for congestion and retry counters that rose then.",
    "查找这些{per:noun}中还有什么在使用网络或交换机：其他作业、检查点、经网络加载的数据；并查看当时上升的拥塞与重传计数。",
)


def _message(usual: Text, cause: Choices, action: Text) -> Message:
    takes = (
        Text(
            "roup {group} (ranks {ranks}[, from rank {source} only]) takes {slowdown_factor:number .1f}x as long to "
            "transmit as ",
            "通信组 {group}（rank {ranks}[，仅限 rank {source} 发送]）的传输时间是",
        )
        + usual
        + Text("", "的 {slowdown_factor:number .1f} 倍")
        + WHEN
    )
    return Message(
        summary=Text("G", "") + takes + Text(".", "。"),
        short=Text("g", "") + takes,
        cause=cause,
        action={(None, None): action, (None, CPU): _PROCESSORS},
        basis=_BASIS,
    )


MESSAGES = {
    "slow": _message(
        Text("comparable groups", "同类通信组"),
        {
            (None, None): Text(
                "Some link between these ranks is slow: their calls take {cost_ns:ms} longer {per:each}.",
                "这些 rank 之间有链路较慢：它们的通信调用{per:each}多用 {cost_ns:ms}。",
            ),
            (None, CPU): Text(
                "Their calls take {cost_ns:ms} longer {per:each}: a processor that moves the data, or a link between "
                "them, is slow.",
                "它们的通信调用{per:each}多用 {cost_ns:ms}：搬运数据的处理器或它们之间的链路较慢。",
            ),
        },
        _LINKS,
    ),
    "times": _message(
        Text("in its other {per:nouns}", "其余{per:noun}"),
        {
            (None, None): Text(
                "What they send is the same, but their calls take {cost_ns:ms} longer, averaged over all {per:nouns}.",
                "发送的内容相同，但通信调用平均到每{per:noun}多用 {cost_ns:ms}。",
            )
        },
        _TIMES,
    ),
}
"""`slow`: slower than others; `times`: slower than itself in other steps."""


@rule(
    "slow-group",
    MESSAGES,
    accuses=True,
    whole_job=True,
    claim=Claim(Turn.SEEN_LATE, time="communication"),
    dimension="communication",
    computed=Text(
        "Compares the transmission of each group's calls with that of other groups, or with the group "
        "itself at other times (`slow_groups`). The saving is the group's share of what a replay saves "
        "if its calls take as long as typical ones; without a replay, the extra time times the exposed "
        "share of transmission.",
        "将各通信组调用的传输与其他组或自身其他时刻比较（`slow_groups`）。节省为重放中其调用与典型调用一"
        "样快时所得的份额；没有重放时，为多出的时间乘以传输的未掩盖比例。",
    ),
    shows=("slow_groups",),
)
def slow_group(
    slow_groups: pl.DataFrame,
    breakdown: pl.DataFrame,
    slow_links: pl.DataFrame | None,
    segments: pl.DataFrame | None,
    arrival: pl.DataFrame | None,
) -> Iterator[Finding]:
    """Report each group in `slow_groups` that costs something, unless its slow link is already reported.

    The saving is its share of what a replay saves if its calls take as long as typical ones. If there is no replay, it
    is their extra time, times the exposed share of transmission.
    """
    if slow_links is not None and not slow_links.is_empty():
        return
    step_ns = breakdown.select(pl.col("window_ns").mean()).item()  # as savings are those of the mean step
    exposed, per = exposed_share(segments, arrival), per_of(breakdown)
    costly = slow_groups.filter(pl.col("exposed_ns").is_null() | (pl.col("exposed_ns") > 0))
    for row in costly.iter_rows(named=True):
        replayed = row["exposed_ns"] is not None
        saving = row["exposed_ns"] if replayed else round(row["cost_ns"] * exposed)
        yield Finding(
            rule="slow-group",
            message="slow" if row["beside"] == "others" else "times",
            parameters={
                "group": row["group_name"] or row["group"],
                **{name: row[name] for name in ("ranks", "source", "cost_ns", "slowdown_factor")},
                **pattern_words(row, per),
                "replayed": 1 if replayed else 2,
                "error_ratio": replay_error(row),
            },
            saving_ns=saving,
            saving_ratio=saving / step_ns if step_ns else 0.0,
            **widened(saving, *((row["saving_low_ns"], row["saving_high_ns"]) if replayed else (0, row["cost_ns"]))),
            replayed=replayed,
            per=per,
            where={
                **{name: row[name] for name in ("group", "group_name")},
                "ranks": listed(row["ranks"]),
                **late_steps(row),
            },
            evidence={name: row[name] for name in slow_groups.columns if name not in _NOT_EVIDENCE},
            most="high" if replayed else "medium",
        )


_NOT_EVIDENCE = ("group", "group_name", "ranks", "saving_low_ns", "saving_high_ns")
