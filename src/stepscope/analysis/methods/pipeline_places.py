"""How transfers between pipeline stages lie to each other, and in which steps marked passes are."""

from __future__ import annotations

import polars as pl

FORWARD, BACKWARD = "forward", "backward"


def direction() -> pl.Expr:
    """Which way a transfer goes: by its name if that says so, else to the next stage or the one before (`stage_a`,
    `stage_b`); null where both are possible, as between the first stage and the last one."""
    step = pl.col("stage_b") - pl.col("stage_a")
    return (
        pl.when(pl.col("name").str.contains(f"(?i)^{FORWARD}"))
        .then(pl.lit(FORWARD))
        .when(pl.col("name").str.contains(f"(?i)^{BACKWARD}"))
        .then(pl.lit(BACKWARD))
        .when(step == 1)
        .then(pl.lit(FORWARD))
        .when(step == -1)
        .then(pl.lit(BACKWARD))
    )


def marked_passes(phases: pl.DataFrame, steps: pl.LazyFrame) -> pl.DataFrame:
    """Ranges of forward and backward (`phase_ranges`) with their `direction` and `step`; those in no step are left
    out."""
    windows = steps.select("rank", "step", start_ns="window_start_ns", until="window_end_ns").collect()
    both = phases.filter(pl.col("phase").is_in([FORWARD, BACKWARD])).sort("start_ns")
    placed = both.join_asof(windows.sort("start_ns"), on="start_ns", by="rank", check_sortedness=False)
    return placed.filter(pl.col("start_ns") < pl.col("until")).rename({"phase": "direction"})
