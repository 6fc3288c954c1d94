"""What to change about a data loader, given its workers and the framework."""

from __future__ import annotations

from typing import Any

from stepscope.advice.messages import Choices
from stepscope.advice.platforms import CPU, MINDSPORE, PYTORCH
from stepscope.advice.templates import Text
from stepscope.analysis.input.loader import HOST_CPU, NO_WORKERS, READING, WORKER_CPU

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


ACTIONS: dict[str, Choices] = {
    GENERAL: {
        (PYTORCH, None): Text(
            "Raise the number of DataLoader workers (num_workers), prefetch (prefetch_factor), pin memory "
            "(pin_memory=True), cache or pre-process the data set.",
            "增加 DataLoader 的工作进程（num_workers）、增加预取（prefetch_factor）、使用锁页内存（pin_memory=True），"
            "缓存或预处理数据集。",
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
            "training loop itself reads and prepares each batch.",
            "为 DataLoader 设置工作进程（先用 num_workers=4，persistent_workers=True）：没有工作进程时，"
            "训练循环自己读取并准备每一批数据。",
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
            "停掉主机上的其他任务，把 rank 分散到更多主机，或减轻数据变换：主机的处理器全忙，"
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


def loader_key(row: dict[str, Any] | None) -> str:
    """The key in `ACTIONS` for a row of `loader`; the general one if nothing is known about its workers."""
    return row["limited_by"] if row is not None and row["limited_by"] in ACTIONS else GENERAL


def loader_parameters(row: dict[str, Any] | None) -> dict[str, Any]:
    """The parameters of the actions."""
    if loader_key(row) in (GENERAL, NO_WORKERS) or row is None:
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
        "mean_wait_ns",
        "median_wait_ns",
        "wait_ratio",
    )
    return {} if row is None else {name: row[name] for name in names}
