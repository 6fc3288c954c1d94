"""Batch normalisation that is synchronised between ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import CPU, MINDSPORE, PYTORCH, Finding, per_of, platform_of
from stepscope.advice.messages import Message, Text, framed
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.stopping import BASIS, code_of, names_of, span_of, stopped, worst_call
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When it is worth a finding: either limit suffices."""

    calls: int = limit(20, "calls in the mean step", "the Ascend advisor's limit")
    idle_ratio: float = limit(0.01, "of the mean step, idle meanwhile", "chosen by us: less is not worth a finding")


MESSAGES = {
    "synchronised": Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one synchronises|synchronise} batch normalisation with other ranks "
            "{calls:number .0f} times {per:each}, for {total_ns:ms} on the host[, on rank {worst_rank}].",
            "{ranks:ranks} {per:each} {calls:number .0f} 次与其他 rank 同步批归一化，占主机 {total_ns:ms}"
            "[（rank {worst_rank}）]。",
        ),
        cause=Text(
            "Each `{name}` gathers the statistics of all ranks before it goes on, forward and backward: small "
            "collectives in the middle of the network that nothing hides.",
            "每个 `{name}` 在前向和反向中都要先汇集所有 rank 的统计量：网络中间的小规模集合通信，无法被掩盖。",
        ),
        action=framed(
            Text(
                "If each rank has enough samples (16 or more are usually enough), use ordinary batch normalisation; "
                "otherwise group or layer normalisation, which need no other samples. Or synchronise small groups of "
                "ranks only",
                "若每个 rank 的样本足够（通常 16 个以上即可），使用普通的批归一化；否则使用组归一化或层归一化，"
                "它们不依赖其他样本。或只在小范围的 rank 之间同步",
            ),
            {
                (PYTORCH, None): Text(
                    ": leave out torch.nn.SyncBatchNorm.convert_sync_batchnorm(), or give it a process_group of the "
                    "ranks of one host.",
                    "：去掉 torch.nn.SyncBatchNorm.convert_sync_batchnorm()，或为它指定只含同一主机上各 rank 的 "
                    "process_group。",
                ),
                (MINDSPORE, None): Text(
                    ": use mindspore.nn.BatchNorm2d in place of mindspore.nn.SyncBatchNorm, or give it process_groups "
                    "of the ranks of one host each.",
                    "：用 mindspore.nn.BatchNorm2d 代替 mindspore.nn.SyncBatchNorm，或为它指定各含同一主机上 rank 的 "
                    "process_groups。",
                ),
                (None, None): Text(".", "。"),
            },
        ),
        basis=BASIS,
    )
}


@rule(
    "sync-batch-norm",
    MESSAGES,
    claim=Claim(Turn.KNOWN_CALLS, "dispatch", yields=("dispatch",)),
    dimension="schedule",
    computed=Text(
        "Counts synchronised batch normalisations by name in each rank's steps but the first, in training only, with "
        "their time on the host and the idle time meanwhile. The saving is that idle time on the rank that loses most "
        "in each step; what their collectives delay elsewhere is unknown.",
        "按名称统计每个 rank 除首步外各步中的同步批归一化（仅训练），及其主机时间和其间的空闲时间。"
        "节省为每步中损失最多的 rank 的空闲时间；其集合通信在别处造成的延迟未知。",
    ),
    shows=("sync_batch_norms",),
    explains=("idle-time:dispatch",),
)
def sync_batch_norm(
    sync_batch_norms: pl.DataFrame,
    breakdown: pl.DataFrame,
    ranks: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report batch normalisation that is synchronised between ranks many times in a step."""
    idles = (pl.col("idle_ns") > 0) & (pl.col("idle_ns") >= limits.idle_ratio * pl.col("step_ns"))
    found = stopped(sync_batch_norms, breakdown, (pl.col("calls") >= limits.calls) | idles)
    if found is None or platform_of(ranks).device == CPU:
        return
    worst = worst_call(sync_batch_norms, found.ranks)
    saving = found.saving(per_of(breakdown)) if found.idle_ratio >= limits.idle_ratio else {}
    yield Finding(
        rule="sync-batch-norm",
        message="synchronised",
        parameters={
            "calls": found.calls,
            "total_ns": found.total_ns,
            "name": names_of(sync_batch_norms, found.ranks)[0],
        },
        **saving,
        evidence={
            "calls": found.calls,
            "total_ns": round(found.total_ns),
            "idle_ns": round(found.idle_ns),
            "window_ns": round(found.step_ns),
        },
        confidence="certain",
        code=code_of(sync_batch_norms, found.ranks),
        span_ns=span_of(worst),
        span_rank=worst["rank"],
    ).on(found.ranks)
