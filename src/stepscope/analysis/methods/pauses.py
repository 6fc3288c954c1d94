"""Time between steps that belongs to none: a recorder that ends a window and begins the next, not the training."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When time between two steps is a pause of the recording."""

    gap_ratio: float = limit(
        0.01, "of the rank's median step", "chosen by us: steps that follow one another leave less"
    )


LIMITS = Limits()


def pauses(steps: pl.DataFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Find the pauses between the steps of ranks whose steps otherwise follow one another without a gap.

    If there is a gap after every step, steps are marked in another way, and what the host does in it is unknown: that
    is no pause.

    Args:
        steps: `rank`, `step`, `start_ns`, `end_ns`.
        limits: What is a gap.

    Returns:
        One row per pause in order: `rank`, `step` (the one after it), `start_ns`, `end_ns`.
    """
    length = (pl.col("end_ns") - pl.col("start_ns")).median().over("rank")
    since = pl.col("end_ns").cum_max().shift(1).over("rank")
    gap = pl.col("start_ns") - pl.col("since")
    found = steps.sort("rank", "start_ns", "step").with_columns(length=length, since=since)
    is_gap = gap > limits.gap_ratio * pl.col("length")
    follows = (~pl.col("is_gap")).any().over("rank")
    marked = found.filter(pl.col("since").is_not_null()).with_columns(is_gap=is_gap).filter(follows & pl.col("is_gap"))
    return marked.select("rank", "step", start_ns="since", end_ns="start_ns")
