"""Pipeline stages of ranks, and how transfers between stages lie to each other."""

from __future__ import annotations

import json

import polars as pl

from stepscope.analysis.methods.memberships import stages
from stepscope.json_values import as_index

FORWARD, BACKWARD = "forward", "backward"


def stages_of(
    ranks: pl.DataFrame, groups: pl.DataFrame | None = None, layout: pl.DataFrame | None = None
) -> dict[int, int]:
    """The pipeline stage of each rank, recorded or not, in order of ranks: as its recording states it, else by the
    parallel layout (`memberships`); nothing if there is one stage, or it is unknown.

    Args:
        ranks: Table `ranks`.
        groups: Table `groups` of all ranks.
        layout: The answer `parallel_layout`, which has recorded ranks only.
    """
    found = {**stages(ranks, groups), **(stages(ranks, groups, layout) if layout is not None else {})}
    stated = {rank: _stated(text) for rank, text in ranks.select("rank", "parallelism").iter_rows() if rank is not None}
    known = {**found, **{rank: stage for rank, stage in stated.items() if stage is not None}}
    return dict(sorted(known.items())) if len(set(known.values())) > 1 else {}


def _stated(text: str | None) -> int | None:
    try:
        parallelism = json.loads(text or "{}")
    except ValueError:
        return None
    return as_index(parallelism.get("pipeline_stage")) if isinstance(parallelism, dict) else None


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
