"""The dataset pipeline makes batches too slowly: the last queue on the host is often empty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from stepscope.advice.base import Finding, rule
from stepscope.advice.platforms import MINDSPORE, PYTORCH, Choices, platform_of
from stepscope.advice.ranks import named, on_rank, place
from stepscope.advice.units import unit_of
from stepscope.analysis.input.input_queues import FIRST
from stepscope.analysis.input.input_stages import BOTTLENECK, PROCESSING

ACTIONS: Choices = {
    (PYTORCH, None): (
        "Raise num_workers of the DataLoader (`stepscope input` shows its queue), make the transforms cheaper or do "
        "them in advance, and read from faster storage."
    ),
    (MINDSPORE, None): (
        "Raise num_parallel_workers of the slow operators (`stepscope input` shows the pipeline), move work out of "
        "the pipeline by preparing the data set in advance (MindRecord), and read from faster storage."
    ),
    (None, None): (
        "Raise the number of workers that make batches (`stepscope input` shows the pipeline), prepare the data set "
        "in advance, and read from faster storage."
    ),
}


@rule("host-queue")
def host_queue(
    input_stages: pl.DataFrame,
    input_queues: pl.DataFrame,
    input_batches: pl.DataFrame,
    input_operators: pl.DataFrame | None,
    idle: pl.DataFrame | None,
    ranks: pl.LazyFrame | None = None,
    steps: pl.LazyFrame | None = None,
) -> Iterator[Finding]:
    """Report ranks whose data processing is the bottleneck (`input_stages`), as one finding.

    The saving is what the training loop waited for a batch, mean without the first (of a recording without steps, the
    sum), on the rank that waited most. It is known only where the loop itself takes from the queue
    (`dataset_iterator`), and claimed only where the idle time of the device is not known, since `idle-time` claims it
    else.
    """
    slow = input_stages.filter((pl.col("stage") == PROCESSING) & (pl.col("verdict") == BOTTLENECK))
    if slow.is_empty():
        return
    late = slow["rank"].to_list()
    worst = slow.sort("empty_ratio", descending=True).row(0, named=True)
    waited, interval, batches = (0.0, 0, 0) if idle is not None else _waits(input_batches, input_queues, late)
    unit = unit_of(steps, "batch")
    chains = _chains(input_operators, late)
    told = f" The operators that hold it up: {', '.join(chains)}." if chains else ""
    where = on_rank(worst["rank"], late)
    yield Finding(
        rule="host-queue",
        summary=(
            f"{named(late, 'makes', 'make')} batches too slowly: {worst['empty']} of {worst['batches']} "
            f"batches ({worst['empty_ratio']:.0%}) found the host queue empty{where}."
        ),
        cause=f"The dataset pipeline on the host makes batches more slowly than training takes them.{told}",
        action=platform_of(ranks, late).pick(ACTIONS),
        saving_ns=unit.saved(waited, batches),
        saving_ratio=waited / interval if interval else 0.0,
        where=place(late),
        evidence={
            **{name: worst[name] for name in ("queue", "empty", "full", "batches", "empty_ratio")},
            "mean_wait_ns": round(waited) or None,
            "operators": chains,
            "data_queue": _data_queue(input_stages, worst["rank"]),
        },
        per=unit.per,
    )


def _waits(batches: pl.DataFrame, queues: pl.DataFrame, ranks: list[int]) -> tuple[float, int, int]:
    """What the loop waited for a batch on the rank that waited most, its time from batch to batch (in ns), and the
    batches but the first."""
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
    """The operators that hold the pipelines of these ranks up, from the readers to the root."""
    if operators is None:
        return []
    chains = operators.filter(pl.col("rank").is_in(ranks))["chain"].drop_nulls()
    return chains.unique(maintain_order=True).to_list()


def _data_queue(stages: pl.DataFrame, rank: int) -> dict[str, Any] | None:
    """How often the queue on the device was empty on the same rank."""
    of_rank = stages.filter((pl.col("rank") == rank) & (pl.col("queue") == "get_next"))
    return of_rank.select("empty", "batches").row(0, named=True) if of_rank.height else None
