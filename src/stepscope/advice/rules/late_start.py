"""A rank begins what was recorded late, and the others wait for it."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.finding import Finding
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule

MESSAGES = {
    "late": Message(
        summary=Text(
            "Rank {rank} begins what was recorded {start_late_ns:duration} later than the median rank; the others wait "
            "for it.",
            "rank {rank} 在记录中比中位 rank 晚 {start_late_ns:duration} 开始，其他 rank 在等待它。",
        ),
        cause=Text(
            "It arrives last in {calls_last:number d} of {calls:number d} collectives, from the first one on, although "
            "its own work takes no longer. What delayed it lies before the recording.",
            "从第一次集合通信起，它在 {calls:number d} 次中有 {calls_last:number d} 次最后到达，"
            "但它自身的工作并不更慢。延迟它的原因发生在记录开始之前。",
        ),
        action=Text(
            "Record some more steps on all ranks: if it is late again, the recording shows why; if not, it was the "
            "start of the profiler.",
            "在所有 rank 上多记录几步：如果它再次迟到，记录会显示原因；否则只是分析器启动造成的。",
        ),
    )
}


@rule(
    "late-start",
    MESSAGES,
    whole_job=True,
    dimension="overall",
    computed=Text(
        "Finds a rank that arrives last in most collectives from the first one on although its own work "
        "takes no longer. Whether the delay recurs is unknown, so no saving is claimed.",
        "找出从第一次集合通信起大多最后到达、但自身工作并不更慢的 rank。延迟是否会再次出现未知，因此不计节省。",
    ),
    shows=("late_starts",),
)
def late_start(late_starts: pl.DataFrame, slow_ranks: pl.DataFrame | None) -> Iterator[Finding]:
    """Report a rank in `late_starts` that is not slow by itself (`slow_ranks`); no saving is claimed, as it is unknown
    whether it recurs."""
    slow = [] if slow_ranks is None else slow_ranks["rank"].to_list()
    for row in late_starts.filter(~pl.col("rank").is_in(slow)).iter_rows(named=True):
        yield Finding(
            rule="late-start",
            message="late",
            parameters={name: row[name] for name in ("rank", "start_late_ns", "calls_last", "calls")},
            where={"rank": row["rank"]},
            evidence={
                name: row[name]
                for name in ("start_late_ns", "waited_ns", "waited_ratio", "calls_last", "calls", "steps")
            },
        )
