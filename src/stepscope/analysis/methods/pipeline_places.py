"""How transfers between pipeline stages lie to each other."""

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
