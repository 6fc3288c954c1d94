"""Training stands still while checkpoints are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.base import Finding, ms, rule
from stepscope.advice.occurrence import Limits as OccurrenceLimits
from stepscope.advice.occurrence import occurrence, occurrence_facts
from stepscope.advice.platforms import MINDSPORE, PYTORCH, Choices, platform_of
from stepscope.advice.ranks import named, on_rank, place
from stepscope.advice.units import unit_of
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits(OccurrenceLimits):
    """When checkpoints are worth a finding."""

    checkpoint_ratio: float = limit(0.05, "of the recording, on the rank that waits longest", "chosen by us")


LIMITS = Limits()

_LESS = "Save less often"
ACTIONS: Choices = {
    (PYTORCH, None): _LESS + ", or without stopping for it (torch.distributed.checkpoint.async_save, or copy the state "
    "to host memory and write it in a thread), and to local storage first.",
    (MINDSPORE, None): _LESS + " (CheckpointConfig(save_checkpoint_steps=...)), without stopping for it "
    "(async_save=True), and to local storage first.",
    (None, None): _LESS + ", or without stopping for it, and to local storage first.",
}


@rule("checkpoint")
def checkpoint(
    lost_time: pl.DataFrame, breakdown: pl.DataFrame, ranks: pl.LazyFrame | None = None, limits: Limits = LIMITS
) -> Iterator[Finding]:
    """Report checkpoints for which training stops long.

    The others wait for the rank that saves, so the rank that waits longest counts. The saving is what all checkpoints
    cost it, as an average over the steps: an upper bound, since state has to be copied in any case.
    """
    slow = lost_time.filter((pl.col("cause") == "checkpoint") & (pl.col("lost_ratio") >= limits.checkpoint_ratio)).sort(
        "lost_ratio", "rank", descending=[True, False]
    )
    if slow.is_empty():
        return
    worst = slow.row(0, named=True)
    numbers = slow["rank"].to_list()
    unit = unit_of(breakdown)
    when = occurrence(worst, unit, limits)
    yield Finding(
        rule="checkpoint",
        summary=(
            f"{named(numbers, 'stops', 'stop')} for checkpoints: {ms(worst['lost_ns'])} of {ms(worst['recorded_ns'])} "
            f"({worst['lost_ratio']:.0%}){on_rank(worst['rank'], numbers)}{', ' + when if when else ''}."
        ),
        cause="The training loop writes the checkpoint itself and goes on when it is on disk.",
        action=platform_of(ranks, numbers).pick(ACTIONS),
        saving_ns=worst["mean_ns"],
        saving_ratio=worst["lost_ratio"],
        where=place(numbers),
        evidence=occurrence_facts(worst),
        per=unit.per,
    )
