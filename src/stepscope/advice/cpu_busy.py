"""The processors of the host are busy, so whatever runs there, runs late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.base import Finding, rule
from stepscope.advice.platforms import PYTORCH, Choices, platform_of
from stepscope.advice.ranks import named, on_rank, place
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When a host counts as busy."""

    busy_ratio: float = limit(0.80, "of all processors not idle, mean", "MindSpore Insight")


LIMITS = Limits()

ACTIONS: Choices = {
    (PYTORCH, None): (
        "Stop what else runs on the host. If the DataLoader's workers use the most, lower num_workers where they do "
        "little (`stepscope input`), or make the transforms cheaper; bind processes to NUMA nodes."
    ),
    (None, None): (
        "Stop what else runs on the host. If the dataset pipeline uses the most, lower its workers where they do "
        "little (`stepscope input`), or make its operators cheaper; bind processes to NUMA nodes."
    ),
}


@rule("cpu-busy")
def cpu_busy(cpu_summary: pl.DataFrame, ranks: pl.LazyFrame, limits: Limits = LIMITS) -> Iterator[Finding]:
    """Report hosts whose processors are idle for less than 1 - `busy_ratio` of the time.

    Where training itself computes on the CPU, busy processors are what one wants, and nothing is said.
    """
    on_cpu = ranks.filter(pl.col("device_kind") == "cpu").select("rank").collect()["rank"]
    mine = cpu_summary.filter(pl.col("scope") == "process").select("rank", mine="mean_busy_processors")
    busy = (
        cpu_summary.filter((pl.col("scope") == "host") & ~pl.col("rank").is_in(on_cpu.implode()))
        .with_columns(busy=1 - pl.col("mean_idle_ratio"))
        .filter(pl.col("busy") > limits.busy_ratio)
        .join(mine, on="rank", how="left")
        .sort("busy", descending=True)
    )
    if busy.is_empty():
        return
    worst = busy.row(0, named=True)
    numbers = busy["rank"].to_list()
    where = on_rank(worst["rank"], numbers)
    share = ""
    if worst["mine"] is not None and worst["processors"]:
        share = f" The training process itself keeps {worst['mine']:.1f} of {worst['processors']} processors busy."
    yield Finding(
        rule="cpu-busy",
        summary=f"{named(numbers, 'runs', 'run')} on a busy host: {worst['busy']:.0%} of its CPU is in use{where}.",
        cause=f"The threads of the host wait for a processor, those that launch work and load data among them.{share}",
        action=platform_of(ranks, numbers).pick(ACTIONS),
        saving_ns=0,
        saving_ratio=0.0,
        where=place(numbers),
        evidence={
            "busy_ratio": worst["busy"],
            "user_ratio": worst["mean_user_ratio"],
            "system_ratio": worst["mean_system_ratio"],
            "io_ratio": worst["mean_io_ratio"],
            "processors": worst["processors"],
            "process_processors": worst["mine"],
        },
    )
