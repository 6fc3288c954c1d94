"""The training loop waits for its data loader, and it is unknown whether the device had work meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.finding import CPU, MINDSPORE, PYTORCH, Finding, per_of, saved
from stepscope.advice.messages import Choices, Message, Text, framed
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.analysis.input.loader import HANDOVER, HOST_CPU, NO_WORKERS, READING, WORKER_CPU
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When waiting for a loader is worth a finding."""

    wait_ratio: float = limit(0.05, "of the step", "the PyTorch profiler's own advice for data loading")


GENERAL = "general"
"""If nothing is known about the workers."""

_READ = Text(
    "use faster or nearer storage, larger files, more workers to overlap reads, ",
    "请使用更快或更近的存储、更大的文件、更多工作进程来重叠读取，",
)


def _who(en: str, zh: str) -> Text:
    """The workers as the subject of a sentence."""
    return Text("Its {workers:count worker is|workers are} " + en, "它的 {workers} 个工作进程" + zh)


def _reading(en: str, zh: str) -> Text:
    waiting = _who(
        "mostly waiting ({used:percent} of a processor each), so they read slowly: ",
        "大部分时间在等待（每个占用 {used:percent} 个处理器），因此读取慢：",
    )
    return waiting + _READ + Text(en, zh)


_TENSORS = Text(
    "tensors from the workers (stack samples in collate_fn; no lists of small tensors), ",
    "张量（在 collate_fn 中堆叠样本，不要传大量小张量的列表），",
)

ACTIONS: dict[str, Choices] = {
    GENERAL: {
        (PYTORCH, None): Text(
            "Raise the number of DataLoader workers (num_workers), prefetch (prefetch_factor), pin memory "
            "(pin_memory=True), keep collate_fn short, cache or pre-process the data set.",
            "增加 DataLoader 的工作进程（num_workers）、增加预取（prefetch_factor）、使用锁页内存（pin_memory=True），"
            "精简 collate_fn，缓存或预处理数据集。",
        ),
        (PYTORCH, CPU): Text(
            "Raise the number of DataLoader workers (num_workers), prefetch (prefetch_factor), cache or pre-process "
            "the data set.",
            "增加 DataLoader 的工作进程（num_workers）、增加预取（prefetch_factor），缓存或预处理数据集。",
        ),
        (MINDSPORE, None): Text(
            "Raise num_parallel_workers of the slow dataset operators, prefetch (prefetch_size in "
            "mindspore.dataset.config), cache the data set or write it to MindRecord in advance.",
            "增大慢的数据集算子的 num_parallel_workers、增加预取（mindspore.dataset.config 的 prefetch_size），"
            "缓存数据集或提前写成 MindRecord。",
        ),
        (None, None): Text(
            "Raise the number of loader workers, prefetch, cache or pre-process the data set.",
            "增加加载数据的工作进程、增加预取，缓存或预处理数据集。",
        ),
    },
    NO_WORKERS: {
        (PYTORCH, None): Text(
            "Give the DataLoader workers (num_workers=4 to begin with, persistent_workers=True): without any, the "
            "training loop itself reads, prepares and collates each batch.",
            "为 DataLoader 设置工作进程（先用 num_workers=4，persistent_workers=True）：没有工作进程时，"
            "训练循环自己读取、准备并整理（collate_fn）每一批数据。",
        ),
        (MINDSPORE, None): Text(
            "Give the dataset workers (num_parallel_workers): without any, the training loop itself reads and prepares "
            "each batch.",
            "为数据集设置工作线程（num_parallel_workers）：没有时，训练循环自己读取并准备每一批数据。",
        ),
        (None, None): Text(
            "Give the loader workers (num_workers of a DataLoader): without any, the training loop itself reads and "
            "prepares each batch.",
            "为数据加载设置工作进程（DataLoader 的 num_workers）：没有时，训练循环自己读取并准备每一批数据。",
        ),
    },
    HANDOVER: framed(
        Text("Take fewer and smaller ", "让工作进程传来更少、更小的"),
        {
            (PYTORCH, None): _TENSORS
            + Text("and take them over in a thread (pin_memory=True)", "并在单独的线程中接收（pin_memory=True）"),
            (PYTORCH, CPU): _TENSORS
            + Text(
                "or share them by torch.multiprocessing.set_sharing_strategy('file_system'), which needs no connection "
                "for each",
                "或用 torch.multiprocessing.set_sharing_strategy('file_system') 共享，不必为每个张量建立连接",
            ),
            (None, None): Text(
                "arrays from the workers, and take them over in a thread of its own", "数组，并在单独的线程中接收"
            ),
        },
        Text("; more workers do not help.", "；增加工作进程没有帮助。"),
    ),
    WORKER_CPU: {
        (None, None): _who(
            "busy ({used:percent} of a processor each): use more, or make the transforms cheaper or do them in "
            "advance.",
            "很忙（每个占用 {used:percent} 个处理器）：增加工作进程，或减轻数据变换，或提前完成变换。",
        ),
    },
    HOST_CPU: {
        (None, None): Text(
            "Stop what else runs on the host, spread ranks over hosts, or make the transforms cheaper: all its "
            "processors are busy, so the workers wait for one ({used:percent} of a processor each).",
            "停掉主机上的其他作业，把 rank 分散到更多主机，或减轻数据变换：主机的处理器全忙，"
            "工作进程要排队（每个占用 {used:percent} 个处理器）。",
        ),
    },
    READING: {
        (PYTORCH, None): _reading("and a higher prefetch_factor.", "并增大 prefetch_factor。"),
        (MINDSPORE, None): _reading("and a higher prefetch_size.", "并增大 prefetch_size。"),
        (None, None): _reading("and more prefetching.", "并增加预取。"),
    },
}
"""By `loader.limited_by`."""

_NOT_READY = Text(
    "The training loop asks for its next batch before it is ready.", "训练循环请求下一批数据时，它还没有就绪。"
)
_TAKEN_OVER = Text(
    "The next batch is ready when the training loop asks for it; to take it over from its worker takes this long.",
    "训练循环请求下一批数据时，它已经就绪；时间用在从工作进程接收它。",
)

MESSAGES = {
    limited_by: Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one waits|wait} for {loader}: {mean_wait_ns:ms} {per:each} on average[ on rank "
            "{worst_rank}], {wait_ratio:percent} of {per:time}.",
            "{ranks:ranks} 在等待 {loader}：平均{per:each} {mean_wait_ns:ms}[（rank {worst_rank}）]，"
            "占{per:time}的 {wait_ratio:percent}。",
        ),
        cause=_TAKEN_OVER if limited_by == HANDOVER else _NOT_READY,
        action=action,
        basis=Text(
            "at most the whole wait, since there may have been other work to do meanwhile",
            "上限为全部等待时间，因为其间可能有其他任务在运行",
        ),
    )
    for limited_by, action in ACTIONS.items()
}
"""Messages by the loader's limiting factor."""


@rule(
    "data-loader",
    MESSAGES,
    claim=Claim(Turn.LOADER, "data_loading", yields=("data_loading",)),
    dimension="dataloader",
    computed=Text(
        "Divides the time that the training loop waits for the batches of a loader by the time of its "
        "steps, if idle time of the device is unknown. The saving is the mean wait per step on the rank "
        "that waits most; its lower bound is nothing, as the device may have had work meanwhile.",
        "在设备空闲时间未知时，用训练循环等待某个加载器数据的时间除以各步的时间。节省取等待最多的 rank 每"
        "步的平均等待；期间设备可能仍有工作，因此下限为零。",
    ),
    shows=("loader", "loader_steps"),
    explains=("slow-rank:data_loading",),
)
def data_loader(
    loader: pl.DataFrame,
    idle: pl.DataFrame | None,
    steps: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report data loaders for which the training loop waits long.

    If the device's idle time is known, `idle-time` reports the part of the wait that costs time, and this rule reports
    nothing. A recording of a single step is skipped, since no batch can be ready for the first. The saving is the mean
    wait per step on the rank that waits most: an upper bound, as the device may have had work.
    """
    if idle is not None:
        return
    slow = loader.filter((pl.col("wait_ratio") >= limits.wait_ratio) & (pl.col("steps") > 1)).sort(
        "wait_ratio", descending=True
    )
    per = per_of(steps)
    for (name,), rows in slow.partition_by("loader", as_dict=True, maintain_order=True).items():
        worst = rows.row(0, named=True)
        yield Finding(
            rule="data-loader",
            message=loader_key(worst),
            parameters={
                "loader": name,
                **{fact: worst[fact] for fact in ("mean_wait_ns", "wait_ratio")},
                **loader_parameters(worst),
            },
            saving_ns=saved(per, worst["mean_wait_ns"], worst["steps"]),
            saving_ratio=worst["wait_ratio"],
            saving_low_ns=0,
            evidence=loader_facts(worst),
            per=per,
        ).on(rows["rank"])


def loader_key(row: dict[str, Any] | None) -> str:
    """The key in `ACTIONS` for a row of `loader`; the general one if nothing is known about its workers."""
    return row["limited_by"] if row is not None and row["limited_by"] in ACTIONS else GENERAL


def loader_parameters(row: dict[str, Any] | None) -> dict[str, Any]:
    """The parameters of the actions."""
    if loader_key(row) in (GENERAL, NO_WORKERS, HANDOVER) or row is None:
        return {}
    used = row["processors_per_worker"] or 0.0
    return {"used": used} if row["limited_by"] == HOST_CPU else {"workers": row["workers"], "used": used}


def loader_facts(row: dict[str, Any] | None) -> dict[str, Any]:
    """The loader's figures, as evidence."""
    names = (
        "loader",
        "limited_by",
        "workers",
        "processors_per_worker",
        "ready",
        "queue_capacity",
        "handed_ratio",
        "mean_wait_ns",
        "median_wait_ns",
        "wait_ratio",
    )
    return {} if row is None else {name: row[name] for name in names}
