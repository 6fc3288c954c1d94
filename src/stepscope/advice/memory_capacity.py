"""Memory runs out."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.base import Finding, rule
from stepscope.advice.memory_texts import of_what
from stepscope.advice.platforms import CPU, Choices, platform_of
from stepscope.advice.ranks import named, on_rank, place
from stepscope.analysis.memory.memory_hints import NEAR_CAPACITY
from stepscope.present import size

CAUSES: Choices = {
    (None, None): "The next longer sequence or larger batch ends training; allocators also slow down here.",
    (None, CPU): "The next longer sequence or larger batch makes the host swap, or ends training.",
}


@rule("memory-capacity")
def memory_capacity(memory_hints: pl.DataFrame, ranks: pl.LazyFrame | None = None) -> Iterator[Finding]:
    """Report ranks whose memory is nearly all in use at the peak (limits: `memory_hints`)."""
    rows = memory_hints.filter(pl.col("kind") == NEAR_CAPACITY).sort("ratio", descending=True)
    if rows.is_empty():
        return
    worst = rows.row(0, named=True)
    numbers = rows["rank"].to_list()
    where = on_rank(worst["rank"], numbers)
    yield Finding(
        rule="memory-capacity",
        summary=(
            f"{named(numbers, 'uses', 'use')} nearly all memory{of_what(worst)}: {size(worst['peak_bytes'])} of "
            f"{size(worst['capacity_bytes'])} ({worst['ratio']:.0%}){where}."
        ),
        cause=platform_of(ranks, numbers).pick(CAUSES),
        action=(
            "Recompute activations in the backward pass, shard optimizer and parameters, take a smaller micro-batch "
            "and accumulate gradients. `stepscope memory` shows what is alive at the peak."
        ),
        saving_ns=0,
        saving_ratio=0.0,
        least="medium",
        where=place(numbers),
        evidence={name: worst[name] for name in ("ratio", "peak_bytes", "capacity_bytes", "device", "graph")},
    )
