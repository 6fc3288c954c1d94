"""Most of a recording without steps is one pause: start-up, which costs no step anything."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.finding import PYTORCH, Finding
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule

MESSAGES = {
    "once": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one is|are} idle once for {duration_ns:duration}[ on rank {worst_rank}]: "
            "{ratio:percent} of the recording.",
            "{ranks:ranks} 有一次空闲长达 {duration_ns:duration}[（rank {worst_rank}）]：占记录的 {ratio:percent}。",
        ),
        cause=Text(
            "No other pause comes near it, so it is most likely start-up: initialisation, the first batch, choosing "
            "algorithms. It is not counted as time that training loses.",
            "其他停顿都远短于它，因此它很可能是启动过程：初始化、第一批数据、选择算法。它不计入训练损失的时间。",
        ),
        action={
            (PYTORCH, None): Text(
                "Mark steps with the profiler's step() and leave the first ones out of the recording "
                "(schedule(skip_first=2, wait=1, warmup=1, active=5)), so that it shows training alone.",
                "用分析器的 step() 标记训练步，并且不记录最初几步"
                "（schedule(skip_first=2, wait=1, warmup=1, active=5)），使记录只包含训练。",
            ),
            (None, None): Text(
                "Record some steps later, with steps marked, so that the recording shows training alone.",
                "标记训练步，并从更靠后的步开始记录，使记录只包含训练。",
            ),
        },
    )
}


@rule(
    "single-pause",
    MESSAGES,
    dimension="overall",
    computed=Text(
        "Finds a pause that no other pause in a recording without steps comes near. It is most likely "
        "start-up, so no saving is claimed.",
        "在没有训练步的记录中，找出远长于其他所有停顿的停顿。它很可能是启动过程，因此不计节省。",
    ),
    shows=("single_pauses",),
)
def single_pause(single_pauses: pl.DataFrame) -> Iterator[Finding]:
    """Report pauses that occur once in a recording without steps; no saving is claimed."""
    if single_pauses.is_empty():
        return
    rows = (
        single_pauses.group_by("rank")
        .agg(pl.col("duration_ns").sum(), pl.col("recorded_ns").first(), pauses=pl.len())
        .sort("duration_ns", "rank", descending=[True, False])
    )
    worst = rows.row(0, named=True)
    of_worst = single_pauses.filter(pl.col("rank") == worst["rank"]).sort(-pl.col("duration_ns"), "start_ns")
    longest = of_worst.row(0, named=True)
    yield Finding(
        rule="single-pause",
        message="once",
        parameters={
            "duration_ns": worst["duration_ns"],
            "ratio": worst["duration_ns"] / worst["recorded_ns"],
        },
        evidence={name: worst[name] for name in ("duration_ns", "recorded_ns", "pauses")},
        confidence="possible",
        span_ns=(longest["start_ns"], longest["start_ns"] + longest["duration_ns"]),
        span_rank=worst["rank"],
    ).on(rows["rank"])
