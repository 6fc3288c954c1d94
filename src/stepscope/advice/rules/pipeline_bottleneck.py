"""Which operators slow the dataset pipeline down, and what helps with their kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from stepscope.advice.finding import Finding, place
from stepscope.advice.messages import Message, Text
from stepscope.advice.registry import rule
from stepscope.analysis.input.input_stages import HEALTHY, PROCESSING
from stepscope.analysis.methods.pipeline_graph import ALL_FULL, IDLE, SENDERS, SINGLE

ACTIONS = {
    "reader": Text(
        "Raise num_parallel_workers of the reader, and read fewer, larger files from faster storage.",
        "增大读取算子的 num_parallel_workers，并从更快的存储读取更少、更大的文件。",
    ),
    "generator": Text(
        "Raise num_parallel_workers of the GeneratorDataset, make its Python code cheaper, or write the data set to "
        "MindRecord once and read that.",
        "增大 GeneratorDataset 的 num_parallel_workers，减轻其 Python 代码，或把数据集一次写成 MindRecord 再读取。",
    ),
    "map": Text(
        "Raise num_parallel_workers of the map, or replace its Python operators by those of the framework; "
        "python_multiprocessing=True keeps Python ones out of each other's way.",
        "增大 map 的 num_parallel_workers，或用框架的算子替换其中的 Python 算子；"
        "python_multiprocessing=True 可避免 Python 算子互相阻塞。",
    ),
    "batch": Text(
        "Raise prefetch_size (mindspore.dataset.config), and num_parallel_workers of the batch.",
        "增大 prefetch_size（mindspore.dataset.config）以及 batch 的 num_parallel_workers。",
    ),
    "shuffle": Text(
        "Give the shuffle a smaller buffer_size, shuffle earlier, while rows are small, or let the reader shuffle its "
        "files only (shuffle=Shuffle.FILES), or cache the rows before it; it has no workers to add.",
        "减小打乱算子的 buffer_size；在数据还小的时候尽早打乱，或让读取算子只打乱文件"
        "（shuffle=Shuffle.FILES）；或缓存打乱之前的数据。该算子没有可增加的工作线程。",
    ),
    "single": Text(
        "It has no workers to add. Raise prefetch_size (mindspore.dataset.config), let the reader choose the rows (its "
        "sampler, num_samples) instead of skip or take, or prepare the data offline, e.g. merge datasets that are "
        "joined here.",
        "该算子没有可增加的工作线程。增大 prefetch_size（mindspore.dataset.config）；让读取算子只读取所需的数据"
        "（num_samples），代替跳过或截取；或离线准备数据，例如合并在此拼接的数据集。",
    ),
    "sender": Text(
        "The dataset is fast enough, and this operator, which only hands batches on, has no workers to add: "
        "send less per batch (smaller data types, less padding), or shorten the steps that take them.",
        "数据集足够快；该算子只把批次交给训练，没有可增加的工作线程。减少每个批次的数据量（更小的数据类型、更少的填充），"
        "或缩短取用批次的训练步。",
    ),
    "other": Text(
        "Raise prefetch_size and, if it has it, num_parallel_workers of the operator, and see whether it can come "
        "later in the pipeline.",
        "增大 prefetch_size 和该算子的 num_parallel_workers（若有），并考虑能否把它移到流水线的后面。",
    ),
}
"""Kind of operator to what helps with it, following MindSpore's performance guide."""

_CAUSES = {
    "last": Text(
        "All queues are full, so {operator}, which takes from them last, is the slowest.",
        "所有队列都是满的，因此最后取数据的 {operator} 最慢。",
    ),
    "first": Text(
        "Its queue is filled to {usage_ratio:percent} only: it reads more slowly than the others take.",
        "它的队列只填充了 {usage_ratio:percent}：读取慢于其他算子的消耗。",
    ),
    "between": Text(
        "The queue before {operator} is filled to {input_usage:percent}, that behind it to {usage_ratio:percent}.",
        "{operator} 之前的队列填充了 {input_usage:percent}，之后的队列填充了 {usage_ratio:percent}。",
    ),
    "waiting": Text(
        "The queue before {operator} is filled to {input_usage:percent}, that behind it to {usage_ratio:percent}. Its "
        "workers hardly use the CPU, so it waits for something else: reads, locks, other processes.",
        "{operator} 之前的队列填充了 {input_usage:percent}，之后的队列填充了 {usage_ratio:percent}。"
        "它的工作线程几乎不占用 CPU，因此在等待其他东西：读取、锁、其他进程。",
    ),
}
"""What the queues show about the first of the operators."""

_FACTS = {"last": ("operator",), "first": ("usage_ratio",)}
"""Parameters of these texts; the others use all three."""

MESSAGES = {
    f"{kind}/{place}": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one has|have} a dataset pipeline that {operators:names /} {operators:one holds|hold} "
            "up.",
            "{ranks:ranks} 的数据集流水线被 {operators:names /} 拖慢。",
        ),
        cause=cause,
        action=action,
    )
    for kind, action in ACTIONS.items()
    for place, cause in _CAUSES.items()
}

_KINDS = {
    **dict.fromkeys((*SINGLE, "Project"), "single"),
    **dict.fromkeys(SENDERS, "sender"),
    "Generator": "generator",
    "Map": "map",
    "Batch": "batch",
    "BucketBatchByLength": "batch",
    "Shuffle": "shuffle",
}


@rule(
    "pipeline-bottleneck",
    MESSAGES,
    dimension="dataloader",
    computed=Text(
        "Takes the dataset operators that their queues and the processors of their workers mark as bottlenecks "
        "(`input_operators`), unless the host's queue shows that batches arrive in time. It claims no saving: the "
        "findings about queues and idle time measure how long training waits.",
        "取由队列和工作进程的处理器占用标出的数据集瓶颈算子（`input_operators`）；若主机队列表明数据及时到达则不报告。"
        "不计节省：训练等待多久由队列和空闲时间的结论衡量。",
    ),
    shows=("input_operators",),
    explains=("host-queue", "idle-time:data_loading", "slow-rank:data_loading"),
)
def pipeline_bottleneck(input_operators: pl.DataFrame, input_stages: pl.DataFrame | None) -> Iterator[Finding]:
    """Report the operators that `input_operators` marks, one finding for the same operators of a kind on all ranks.

    Nothing is reported if the host queue shows that batches arrive in time, so that the slowest operator costs nothing,
    or if queues were sampled only once, at the start, when all are empty. `host-queue`, which measures how long
    training waits, claims the saving.
    """
    healthy: list[int] = []
    if input_stages is not None:
        of_processing = (pl.col("stage") == PROCESSING) & (pl.col("verdict") == HEALTHY)
        healthy = input_stages.filter(of_processing)["rank"].to_list()
    fullest_inputs = input_operators.group_by("rank", "pipeline", operator="parent").agg(
        input_usage=pl.col("usage_ratio").max()
    )
    slow = (
        input_operators.filter(pl.col("samples").max().over("rank", "pipeline") > 1)
        .filter(pl.col("bottleneck") & ~pl.col("rank").is_in(healthy))
        .with_columns(kind=_kind())
        .join(fullest_inputs, on=["rank", "pipeline", "operator"], how="left", maintain_order="left")
    )
    ordered = slow.sort("rank", "depth", "number", descending=[False, True, True])
    named_alike = pl.col("operator").str.join("/").over("rank", "kind")
    alike = ordered.with_columns(names=named_alike).partition_by("kind", "names", as_dict=True, maintain_order=True)
    for (kind, _), part in alike.items():
        yield _finding(str(kind), part)


def _kind() -> pl.Expr:
    bare = pl.col("type").str.strip_suffix("Op")
    reads = pl.col("children").list.len() == 0
    known = bare.replace_strict(list(_KINDS), list(_KINDS.values()), default=None, return_dtype=pl.String)
    return pl.coalesce(known, pl.when(reads).then(pl.lit("reader")), pl.lit("other"))


def _finding(kind: str, rows: pl.DataFrame) -> Finding:
    ranks = rows["rank"].to_list()
    names = rows["operator"].unique(maintain_order=True).to_list()
    first = rows.row(0, named=True)
    around = _place(first)
    return Finding(
        rule="pipeline-bottleneck",
        message=f"{kind}/{around}",
        parameters={
            "ranks": sorted(set(ranks)),
            "operators": names,
            **{fact: first[fact] for fact in _FACTS.get(around, ("operator", "usage_ratio", "input_usage"))},
        },
        where={**place(ranks), "operators": names},
        evidence={
            "kind": kind,
            "chain": first["chain"],
            "usage": dict(rows.select("operator", "usage_ratio").iter_rows()),
            "input_usage_ratio": first["input_usage"],
            "workers": first["workers"],
            "processors_per_worker": first["processors_per_worker"],
            "observations": first["observations"],
        },
    )


def _place(row: dict[str, Any]) -> str:
    """The key in `_CAUSES` that fits the queues around an operator."""
    usage, before = row["usage_ratio"], row["input_usage"]
    # a root may have an output queue (if the training loop takes from it) and be slow like any other operator
    if usage is None or ALL_FULL in row["observations"]:
        return "last"
    if before is None:
        return "first"
    return "waiting" if IDLE in row["observations"] else "between"
