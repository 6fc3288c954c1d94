"""The training loop waits for its data loader, and it is unknown whether the device had work meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.finding import Finding
from stepscope.advice.loader_words import ACTIONS, loader_facts, loader_key, loader_parameters
from stepscope.advice.messages import Message
from stepscope.advice.platforms import platform_of
from stepscope.advice.ranks import place, shared
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.templates import Text
from stepscope.advice.units import per_of, saved
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When waiting for a loader is worth a finding."""

    wait_ratio: float = limit(0.05, "of the step", "the PyTorch profiler's own advice for data loading")


LIMITS = Limits()


MESSAGES = {
    limited_by: Message(
        summary=Text(
            "{ranks:Ranks} {ranks:one waits|wait} for {loader}: {mean_wait_ns:ms} {per:each} on average[ on rank "
            "{worst_rank}], {wait_ratio:percent} of {per:time}.",
            "{ranks:ranks} 在等待 {loader}：平均{per:each} {mean_wait_ns:ms}[（rank {worst_rank}）]，"
            "占{per:time}的 {wait_ratio:percent}。",
        ),
        cause=Text(
            "The training loop asks for its next batch before it is ready.", "训练循环请求下一批数据时，它还没有就绪。"
        ),
        action=action,
        basis=Text(
            "at most the whole wait, since there may have been other work to do meanwhile",
            "上限为全部等待时间，因为其间可能有其他任务在运行",
        ),
    )
    for limited_by, action in ACTIONS.items()
}
"""Messages by the loader's limiting factor."""


@rule("data-loader", MESSAGES, claim=Claim(Turn.LOADER, "data_loading", yields=("data_loading",)))
def data_loader(
    loader: pl.DataFrame,
    idle: pl.DataFrame | None,
    ranks: pl.LazyFrame | None = None,
    steps: pl.LazyFrame | None = None,
    limits: Limits = LIMITS,
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
        late = rows["rank"].to_list()
        yield Finding(
            rule="data-loader",
            message=loader_key(worst),
            parameters={
                **shared(late, worst["rank"]),
                "loader": name,
                **{fact: worst[fact] for fact in ("mean_wait_ns", "wait_ratio")},
                **loader_parameters(worst),
            },
            saving_ns=saved(per, worst["mean_wait_ns"], worst["steps"]),
            saving_ratio=worst["wait_ratio"],
            saving_low_ns=0,
            where=place(late),
            evidence=loader_facts(worst),
            per=per,
            platform=platform_of(ranks, late),
        )
