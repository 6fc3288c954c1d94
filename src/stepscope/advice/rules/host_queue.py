"""The dataset pipeline makes batches too slowly: the last queue on the host is often empty."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from stepscope.advice.finding import MINDSPORE, PYTORCH, Finding, per_of, saved
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.rules.pipeline_bottleneck import ACTIONS
from stepscope.analysis.input.input_queues import FIRST
from stepscope.analysis.input.input_stages import BOTTLENECK, PROCESSING

_ONLY_SHUFFLES = re.compile(r"Shuffle\w*(/Shuffle\w*)*")

MESSAGES = {
    "empty": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one makes|make} batches too slowly: {empty} of {batches} batches "
            "({empty_ratio:percent}) found the host queue empty[ on rank {worst_rank}].",
            "{ranks:ranks} 生成批次过慢：{batches} 个批次中有 {empty} 个（{empty_ratio:percent}）"
            "遇到主机队列为空[（rank {worst_rank}）]。",
        ),
        cause=Text(
            "The dataset pipeline on the host makes batches more slowly than training takes them.[ The operators that "
            "hold it up: {operators:names}.]",
            "主机上的数据集流水线生成批次的速度低于训练消耗的速度。[拖慢它的算子：{operators:names}。]",
        ),
        action={
            (PYTORCH, None): Text(
                "Raise num_workers of the DataLoader («`stepscope input`» shows its queue), make the transforms "
                "cheaper or do them in advance, and read from faster storage.",
                "增大 DataLoader 的 num_workers（«`stepscope input`» 显示其队列），减轻数据变换或提前完成，"
                "并从更快的存储读取。",
            ),
            (MINDSPORE, None): Text(
                "Raise num_parallel_workers of the slow operators («`stepscope input`» shows the pipeline), move work "
                "out of the pipeline by preparing the data set in advance (MindRecord), and read from faster storage.",
                "增大慢算子的 num_parallel_workers（«`stepscope input`» 显示流水线），提前准备数据集（MindRecord）"
                "以减少流水线的工作，并从更快的存储读取。",
            ),
            (None, None): Text(
                "Raise the number of workers that make batches («`stepscope input`» shows the pipeline), prepare the "
                "data set in advance, and read from faster storage.",
                "增加生成批次的工作进程（«`stepscope input`» 显示流水线），提前准备数据集，并从更快的存储读取。",
            ),
        },
    )
}
MESSAGES["shuffle"] = replace(MESSAGES["empty"], action=ACTIONS["shuffle"])
"""If nothing but shuffling holds the pipeline up."""


@rule(
    "host-queue",
    MESSAGES,
    claim=Claim(Turn.HOST_QUEUE, "data_loading", yields=("data_loading",)),
    dimension="dataloader",
    computed=Text(
        "Counts how often the host's data queue was empty when a batch was taken (`input_stages`). The "
        "saving is the mean wait of the training loop for a batch (without the first) on the rank that "
        "waited most, if the loop itself takes from the queue; where idle time of the device is known, "
        "`idle-time` claims it instead.",
        "统计取批次时主机数据队列为空的次数（`input_stages`）。若训练循环直接从该队列取数据，节省取等待最"
        "多的 rank 每个批次（不含首个）的平均等待；设备空闲时间已知时由 `idle-time` 计入。",
    ),
    shows=("input_stages", "input_queues", "input_operators"),
    explains=("idle-time:data_loading", "slow-rank:data_loading", "iteration-interval"),
)
def host_queue(
    input_stages: pl.DataFrame,
    input_queues: pl.DataFrame,
    input_batches: pl.DataFrame,
    input_operators: pl.DataFrame | None,
    idle: pl.DataFrame | None,
    steps: pl.LazyFrame | None = None,
) -> Iterator[Finding]:
    """Report ranks whose data processing is the bottleneck (`input_stages`), as one finding.

    The saving is the training loop's wait for a batch, as the mean without the first (the sum if the recording has no
    steps), on the rank that waited most. It is known only if the loop itself takes from the queue (`dataset_iterator`),
    and claimed only if the device's idle time is unknown, since `idle-time` claims it otherwise.
    """
    slow = input_stages.filter((pl.col("stage") == PROCESSING) & (pl.col("verdict") == BOTTLENECK)).sort(
        "empty_ratio", descending=True
    )
    if slow.is_empty():
        return
    late = slow["rank"].to_list()
    worst = slow.row(0, named=True)
    waited, interval, batches = (0.0, 0, 0) if idle is not None else _waits(input_batches, input_queues, late)
    per = per_of(steps, "batch")
    chains = _chains(input_operators, late)
    yield Finding(
        rule="host-queue",
        message="shuffle" if chains and all(map(_ONLY_SHUFFLES.fullmatch, chains)) else "empty",
        parameters={
            **{name: worst[name] for name in ("empty", "batches", "empty_ratio")},
            "operators": chains,
        },
        saving_ns=saved(per, waited, batches),
        saving_ratio=waited / interval if interval else 0.0,
        evidence={
            **{name: worst[name] for name in ("queue", "empty", "full", "batches", "empty_ratio")},
            "mean_wait_ns": round(waited) or None,
            "operators": chains,
            "data_queue": _data_queue(input_stages, worst["rank"]),
        },
        per=per,
    ).on(late)


def _waits(batches: pl.DataFrame, queues: pl.DataFrame, ranks: list[int]) -> tuple[float, int, int]:
    """On the rank that waited most: the loop's wait for a batch and the time from batch to batch (in ns), and the
    number of batches without the first."""
    of_loop = (pl.col("queue") == "dataset_iterator") & pl.col("rank").is_in(ranks)
    waits = (
        batches.filter(of_loop & (pl.col("number") > FIRST))
        .group_by("rank")
        .agg(pl.col("get_ns").mean(), batches=pl.col("get_ns").count().cast(pl.Int64))
        .join(queues.filter(of_loop).select("rank", "interval_ns"), on="rank")
        .drop_nulls()
        .sort("get_ns", descending=True)
    )
    if waits.is_empty():
        return 0.0, 0, 0
    most = waits.row(0, named=True)
    return float(most["get_ns"]), int(most["interval_ns"]), int(most["batches"])


def _chains(operators: pl.DataFrame | None, ranks: list[int]) -> list[str]:
    """The operators that slow down the pipelines of these ranks, from the readers to the root."""
    if operators is None:
        return []
    chains = operators.filter(pl.col("rank").is_in(ranks))["chain"].drop_nulls()
    return chains.unique(maintain_order=True).to_list()


def _data_queue(stages: pl.DataFrame, rank: int) -> dict[str, Any] | None:
    """How often the queue on the device was empty on the same rank."""
    of_rank = stages.filter((pl.col("rank") == rank) & (pl.col("queue") == "get_next"))
    return of_rank.select("empty", "batches").row(0, named=True) if of_rank.height else None
