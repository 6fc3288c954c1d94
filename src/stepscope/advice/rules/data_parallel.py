"""How PyTorch's data parallelism is set up: threads instead of processes, a backend of the host, needless sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.bucketing import MESSAGES as BUCKETED
from stepscope.advice.bucketing import Limits as BucketingLimits
from stepscope.advice.bucketing import bucketed
from stepscope.advice.finding import CPU, CUDA, NPU, PYTORCH, ROCM, Finding, per_of, place, platform_of
from stepscope.advice.messages import Choices, Message, Text
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.sharding import MESSAGES as SHARDED
from stepscope.advice.sharding import Limits as ShardingLimits
from stepscope.advice.sharding import sharded
from stepscope.analysis.communication.data_parallelism import DDP, THREADS
from stepscope.analysis.methods.statistics import median
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits(ShardingLimits, BucketingLimits):
    """When the settings of data parallelism are worth a finding."""

    micro_batches: float = limit(1.8, "forward passes to a step of the optimizer", "chosen by us: it accumulates")
    reduced_ratio: float = limit(0.9, "of the forward passes", "chosen by us: gradients are summed after nearly all")
    host_ratio: float = limit(0.01, "of the step, in calls on the host", "chosen by us: below it nothing is gained")
    copies_ratio: float = limit(0.01, "of the step, copying gradients", "chosen by us: below it nothing is gained")
    searches_ratio: float = limit(
        0.01, "of the step, searching unused parameters", "chosen by us: below it nothing is gained"
    )


_NCCL: Choices = {
    (None, CUDA): Text(
        "Use NCCL: `init_process_group('nccl')`, with tensors on the GPU.",
        "使用 NCCL：`init_process_group('nccl')`，张量放在 GPU 上。",
    ),
    (None, ROCM): Text(
        "Use RCCL: `init_process_group('nccl')`, with tensors on the GPU.",
        "使用 RCCL：`init_process_group('nccl')`，张量放在 GPU 上。",
    ),
    (None, NPU): Text(
        "Use HCCL: `init_process_group('hccl')`, with tensors on the NPU.",
        "使用 HCCL：`init_process_group('hccl')`，张量放在 NPU 上。",
    ),
    (None, None): Text(
        "Use the communication library of the accelerator, with tensors on it.",
        "使用加速器的通信库，张量放在加速器上。",
    ),
}

MESSAGES = {
    "threads": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one runs|run} nn.DataParallel: one process does the work of all copies of the model.",
            "{ranks:ranks} 使用 nn.DataParallel：一个进程承担模型所有副本的工作。",
        ),
        cause=Text(
            "It copies the model in each forward pass, and its threads share Python's lock.",
            "它在每次前向时复制模型，各线程还共用 Python 的锁。",
        ),
        action={
            (PYTORCH, None): Text(
                "Use DistributedDataParallel with one process for each copy (`torchrun --nproc-per-node`).",
                "改用 DistributedDataParallel，每个副本一个进程（`torchrun --nproc-per-node`）。",
            ),
            (None, None): Text("Use one process for each copy of the model.", "模型的每个副本使用一个进程。"),
        },
    ),
    "backend": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one communicates|communicate} over the host only[ ({backend})]: {host_ns:ms} "
            "{per:each} in {calls:count call|calls} in all.",
            "{ranks:ranks} 仅通过主机通信[（{backend}）]：{per:each} {host_ns:ms}，共 {calls} 次。",
        ),
        cause=Text(
            "Work runs on an accelerator, but no call of its communication library is recorded: tensors go through the "
            "memory and processors of the host.",
            "计算在加速器上进行，但没有记录到其通信库的调用：张量经由主机的内存和处理器传输。",
        ),
        action=_NCCL,
    ),
    "every_backward": Message(
        summary=Text(
            "Gradients are summed after each of {micro_batches:number .0f} micro-batches, but the optimizer updates "
            "once: "
            "{needless:percent} of the sums are needless.",
            "每 {micro_batches:number .0f} 个微批次优化器只更新一次，但每个微批次后都对梯度求和：{needless:percent} 的"
            "求和是多余的。",
        ),
        cause=Text(
            "{reduced} of {forwards} forward passes are followed by an all-reduce, with "
            "{optimizer_steps:count update|updates} "
            "of the optimizer.",
            "{forwards} 次前向中有 {reduced} 次之后有 all-reduce，优化器只更新 {optimizer_steps} 次。",
        ),
        action=Text(
            "Run all but the last micro-batch, forward and backward, in `with model.no_sync():`.",
            "除最后一个微批次外，前向和反向都放在 `with model.no_sync():` 中。",
        ),
        basis=Text(
            "from nothing, if the last sum then takes as long, to that share of what computing does not cover",
            "若最后一次求和因此同样耗时则为零，上限为未被计算掩盖部分的这一比例",
        ),
    ),
    "bucket_copies": Message(
        summary=Text(
            "Copying gradients out of buckets takes the host {copies_ns:ms} {per:each} ({ratio:percent}).",
            "把梯度从分桶中拷出，{per:each}占用主机 {copies_ns:ms}（{ratio:percent}）。",
        ),
        cause=Text(
            "DDP keeps gradients apart from the buckets that it sums, {copies} copies in all.",
            "DDP 的梯度与求和用的分桶分开存放，共拷贝 {copies} 次。",
        ),
        action=Text(
            "Set `gradient_as_bucket_view=True` in DistributedDataParallel; it saves the memory of the gradients, too.",
            "在 DistributedDataParallel 中设置 `gradient_as_bucket_view=True`，还可节省梯度所占内存。",
        ),
    ),
    "searches": Message(
        summary=Text(
            "Searching for unused parameters takes the host {searches_ns:ms} {per:each} ({ratio:percent}).",
            "查找未使用的参数，{per:each}占用主机 {searches_ns:ms}（{ratio:percent}）。",
        ),
        cause=Text(
            "With `find_unused_parameters=True`, DDP follows the graph of each forward pass, {searches} times in all.",
            "由于 `find_unused_parameters=True`，DDP 在每次前向后遍历计算图，共 {searches} 次。",
        ),
        action=Text(
            "If each step uses all parameters, leave `find_unused_parameters` out of DistributedDataParallel; if each "
            "leaves out the same ones, set `static_graph=True` instead.",
            "若每步都使用全部参数，从 DistributedDataParallel 中去掉 `find_unused_parameters`；若每步未使用的参数相同，"
            "改为设置 `static_graph=True`。",
        ),
    ),
    **BUCKETED,
    **SHARDED,
}


@rule(
    "data-parallel",
    MESSAGES,
    whole_job=True,
    claim=Claim(Turn.OPERATORS, "communication", yields=("communication",)),
    dimension="communication",
    computed=Text(
        "Counts forward passes of DataParallel and DistributedDataParallel, steps of the optimizer, and sums of "
        "gradients between two forward passes. The saving of needless sums is their share of the all-reduce time that "
        "no computing covers; of buckets, what others would save at the latency and rate of this recording "
        "(`gradient_buckets`); of FSDP, at most the time of late, small or repeated all-gathers that no computing "
        "covers (`sharded_gathers`); of other settings it is unknown.",
        "统计 DataParallel 与 DistributedDataParallel 的前向、优化器更新以及两次前向之间的梯度求和。"
        "多余求和的节省为其在未被计算掩盖的 all-reduce 时间中所占比例；分桶的节省按此记录的延迟和速率计算"
        "（`gradient_buckets`）；FSDP 的节省上限为未提前、过小或"
        "重复的 all-gather 中未被计算掩盖的时间（`sharded_gathers`）；其他设置的节省未知。",
    ),
    shows=("data_parallelism", "gradient_buckets", "sharded_gathers"),
)
def data_parallel(
    data_parallelism: pl.DataFrame,
    breakdown: pl.DataFrame,
    exposed_calls: pl.DataFrame | None = None,
    gradient_buckets: pl.DataFrame | None = None,
    transmission: pl.DataFrame | None = None,
    sharded_gathers: pl.DataFrame | None = None,
    memory_peak: pl.DataFrame | None = None,
    ranks: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report settings of data parallelism that cost time, by what was recorded of them."""
    step_ns = median(breakdown, pl.col("window_ns"))
    steps = breakdown["step"].n_unique()
    if not step_ns or not steps:
        return
    per = per_of(breakdown)
    threads = data_parallelism.filter(pl.col("wrapper") == THREADS)
    if threads.height:
        yield Finding(
            rule="data-parallel",
            message="threads",
            parameters={"ranks": threads["rank"].to_list()},
            per=per,
            where=place(threads["rank"]),
            least="medium",
            confidence="certain",
        )
    own_ns = pl.col("host_ns") / steps
    hosted = data_parallelism.filter((pl.col("device_calls") == 0) & (own_ns >= limits.host_ratio * step_ns))
    if hosted.height and platform_of(ranks).device not in (CPU, None):
        worst = hosted.sort(-pl.col("host_ns"), "rank").row(0, named=True)
        yield Finding(
            rule="data-parallel",
            message="backend",
            parameters={
                "ranks": hosted["rank"].to_list(),
                "backend": worst["backend"],
                "host_ns": worst["host_ns"] / steps,
                "calls": worst["host_calls"],
            },
            per=per,
            where={"ranks": hosted["rank"].to_list()},
            evidence={name: worst[name] for name in ("backend", "host_ns", "host_calls")},
            least="medium",
            confidence="likely",
        )
    ddp = data_parallelism.filter(pl.col("wrapper") == DDP)
    yield from _needless_sums(ddp, exposed_calls, step_ns, steps, limits, breakdown)
    copies_ns = float(ddp["copies_ns"].median() or 0) / steps  # type: ignore[arg-type]
    if copies_ns >= limits.copies_ratio * step_ns:
        yield Finding(
            rule="data-parallel",
            message="bucket_copies",
            parameters={"copies_ns": copies_ns, "ratio": copies_ns / step_ns, "copies": int(ddp["copies"].sum())},
            per=per,
            where={"ranks": ddp["rank"].to_list()},
            evidence={"copies_ns": round(copies_ns)},
            confidence="certain",
            most="low",
        )
    searches_ns = float(ddp["searches_ns"].median() or 0) / steps  # type: ignore[arg-type]
    if searches_ns >= limits.searches_ratio * step_ns:
        yield Finding(
            rule="data-parallel",
            message="searches",
            parameters={
                "searches_ns": searches_ns,
                "ratio": searches_ns / step_ns,
                "searches": int(ddp["searches"].sum()),
            },
            per=per,
            where={"ranks": ddp["rank"].to_list()},
            evidence={"searches_ns": round(searches_ns)},
            confidence="certain",
            most="low",
        )
    yield from bucketed(gradient_buckets, transmission, breakdown, limits)
    yield from sharded(sharded_gathers, memory_peak, breakdown, limits)


def _needless_sums(
    ddp: pl.DataFrame,
    exposed: pl.DataFrame | None,
    step_ns: float,
    steps: int,
    limits: Limits,
    breakdown: pl.DataFrame,
) -> Iterator[Finding]:
    """Gradients that are summed after each micro-batch although the optimizer steps less often."""
    often = (pl.col("forwards") >= limits.micro_batches * pl.col("optimizer_steps")) & (pl.col("optimizer_steps") > 0)
    summed = pl.col("reduced") >= limits.reduced_ratio * pl.col("forwards")
    found = ddp.filter(often & summed & (pl.col("forwards") > 1)).sort("rank")
    if found.is_empty():
        return
    row = found.row(0, named=True)
    needless = 1 - row["optimizer_steps"] / row["forwards"]
    bare = 0.0
    if exposed is not None:
        own = exposed.filter(pl.col("operation") == "all_reduce").group_by("rank").agg(pl.col("transmit_ns").sum())
        bare = float(own["transmit_ns"].median() or 0) / steps  # type: ignore[arg-type]
    saving = needless * min(bare, step_ns)
    yield Finding(
        rule="data-parallel",
        message="every_backward",
        parameters={
            "micro_batches": row["forwards"] / row["optimizer_steps"],
            "needless": needless,
            **{name: row[name] for name in ("reduced", "forwards", "optimizer_steps")},
        },
        saving_ns=round(saving),
        saving_ratio=saving / step_ns,
        saving_low_ns=0,
        per=per_of(breakdown),
        where={"ranks": found["rank"].to_list()},
        evidence={name: row[name] for name in ("reduced", "forwards", "optimizer_steps", "all_reduces")},
        confidence="likely",
    )
