"""The training loop waits for its data loader, where nothing tells whether the device had work meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.base import Finding, ms, rule
from stepscope.advice.loader_texts import loader_action, loader_facts
from stepscope.advice.platforms import platform_of
from stepscope.advice.ranks import named, on_rank, place
from stepscope.advice.units import unit_of
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When waiting for a loader is worth a finding."""

    wait_ratio: float = limit(0.05, "of the step", "the PyTorch profiler's own advice for data loading")


LIMITS = Limits()


@rule("data-loader")
def data_loader(
    loader: pl.DataFrame,
    idle: pl.DataFrame | None,
    ranks: pl.LazyFrame | None = None,
    steps: pl.LazyFrame | None = None,
    limits: Limits = LIMITS,
) -> Iterator[Finding]:
    """Report loaders for which the training loop waits long.

    Where the idle time of the device is known, `idle-time` says what of the waiting costs anything, and this rule
    nothing. Of a single step nothing is said, since no batch can be ready for the first. The saving is the mean wait in
    a step on the rank that waits most: an upper bound, as the device may have had work.
    """
    if idle is not None:
        return
    slow = loader.filter((pl.col("wait_ratio") >= limits.wait_ratio) & (pl.col("steps") > 1)).sort(
        "wait_ratio", descending=True
    )
    unit = unit_of(steps)
    for (name,), rows in slow.partition_by("loader", as_dict=True, maintain_order=True).items():
        worst = rows.row(0, named=True)
        late = rows["rank"].to_list()
        where = on_rank(worst["rank"], late)
        yield Finding(
            rule="data-loader",
            summary=(
                f"{named(late, 'waits', 'wait')} for {name}: {ms(worst['mean_wait_ns'])} {unit.within} on average"
                f"{where}, {worst['wait_ratio']:.0%} of {unit.time}."
            ),
            cause="The training loop asks for its next batch before it is ready.",
            action=loader_action(worst, platform_of(ranks, late)),
            saving_ns=unit.saved(worst["mean_wait_ns"], worst["steps"]),
            saving_ratio=worst["wait_ratio"],
            where=place(late),
            evidence=loader_facts(worst),
            per=unit.per,
        )
