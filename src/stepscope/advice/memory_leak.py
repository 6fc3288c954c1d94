"""Memory grows from step to step, and who keeps it."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.advice.base import Finding, rule
from stepscope.advice.memory_texts import of_what
from stepscope.advice.platforms import MINDSPORE, PYTORCH, Choices, platform_of
from stepscope.advice.ranks import named, on_rank, place
from stepscope.advice.units import unit_of
from stepscope.analysis.memory.memory_hints import GROWTH, UNRELEASED
from stepscope.present import plural, size

NAMED = 5
"""Operators whose blocks were never released that are named."""

ACTIONS: Choices = {
    (PYTORCH, None): (
        "Look for results that are kept with their graph (a loss appended to a list without .item() or .detach()), "
        "caches without a limit, and hooks that collect tensors."
    ),
    (MINDSPORE, None): (
        "Look for results that are kept as tensors (a loss appended to a list without .asnumpy()), caches without a "
        "limit, and hooks that collect tensors."
    ),
    (None, None): (
        "Look for results that are kept as tensors (a loss appended to a list), caches without a limit, and hooks "
        "that collect tensors."
    ),
}


@rule("memory-leak")
def memory_leak(
    memory_hints: pl.DataFrame, ranks: pl.LazyFrame | None = None, steps: pl.LazyFrame | None = None
) -> Iterator[Finding]:
    """Report memory that grows step by step, with the operators that leave blocks behind (limits: `memory_hints`)."""
    growing = memory_hints.filter(pl.col("kind") == GROWTH).sort("per_step_bytes", descending=True)
    kept = memory_hints.filter(pl.col("kind") == UNRELEASED).sort("bytes", descending=True)
    if growing.is_empty():
        return
    worst = growing.row(0, named=True)
    numbers = growing["rank"].to_list()
    per = unit_of(steps).per
    where = on_rank(worst["rank"], numbers)
    owners = kept["name"].drop_nulls().unique(maintain_order=True).to_list()
    told = f" Never released were blocks of {', '.join(owners[:NAMED])}." if owners else ""
    yield Finding(
        rule="memory-leak",
        summary=(
            f"{named(numbers, 'needs', 'need')} {size(worst['per_step_bytes'])} more memory{of_what(worst)} in each "
            f"{per}{where}: {size(worst['bytes'])} over {plural(worst['steps'], per)}."
        ),
        cause=f"Something that each {per} makes stays alive: what is in use between {per}s rises.{told}",
        action=platform_of(ranks, numbers).pick(ACTIONS),
        saving_ns=0,
        saving_ratio=0.0,
        least="medium",
        per=per,
        where=place(numbers),
        evidence={
            **{name: worst[name] for name in ("per_step_bytes", "bytes", "steps", "ratio", "peak_bytes")},
            "unreleased": kept.select("rank", "name", "blocks", "bytes", "steps").head(NAMED).to_dicts(),
        },
    )
