"""What is known of ranks of which only forward passes, batches, checkpoints and perhaps calls were recorded.

Light tracing records these: backward passes and optimizers are unmarked, and may be waits for other ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.analysis.methods.light_marks import marking_no_others
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When ranks enter their forward passes together."""

    entry_ratio: float = limit(
        0.1, "of a forward pass, by which waits for batches differ", "chosen by us: more may be a wait in the pass"
    )


LIMITS = Limits()

KNOWN = {
    "rank": pl.Int32,
    "step": pl.Int32,
    "is_light": pl.Boolean,
    "has_calls": pl.Boolean,
    "forward_known": pl.Boolean,
}


def forward_only(
    ranks: Sequence[int], slices: pl.LazyFrame | None, own: pl.DataFrame, work: pl.DataFrame, limits: Limits = LIMITS
) -> pl.DataFrame:
    """Which times of such ranks are their own, by step.

    With recorded calls, all are: what waits is a call. Without, a forward pass may contain waits of sharded models for
    ranks that enter it later; so it is only known if no rank waits longer for its batch.

    Args:
        ranks: Of which neither operators nor kernels were recorded.
        slices: All ranges.
        own: `rank`, `step`, `kind`, `own_ns`.
        work: As the analysis of that name.
        limits: What counts as together.

    Returns:
        `rank`, `step`, `is_light` (always true), `has_calls` and `forward_known`, of ranks of which no other phases are
        marked.
    """
    light = marking_no_others(ranks, slices)
    if not light:
        return pl.DataFrame(schema=KNOWN)
    mine = own.filter(pl.col("rank").is_in(light))
    calls = work.filter(pl.col("kind") == "communication").select("rank", "step", has_calls=pl.lit(True)).unique()

    def of(kind: str) -> pl.Expr:
        return pl.col("own_ns").filter(pl.col("kind") == kind).sum()

    times = mine.group_by("rank", "step").agg(forward=of("computing"), data=of("data_loading"))
    apart = pl.col("data").max().over("step") - pl.col("data").min().over("step")
    together = apart <= limits.entry_ratio * pl.col("forward").median().over("step")
    return (
        times.with_columns(together=together)
        .join(calls, on=["rank", "step"], how="left")
        .with_columns(is_light=pl.lit(True), has_calls=pl.col("has_calls").fill_null(False))
        .with_columns(forward_known=pl.col("has_calls") | pl.col("together"))
        .select(list(KNOWN))
    )
