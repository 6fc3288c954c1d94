"""Positions of communication calls in their groups, the same on every rank."""

from __future__ import annotations

import polars as pl

from stepscope.tables import STEPS

CALL = ("group", "sequence")
"""Columns that identify a call on all ranks."""

_OF_RANK = ["group", "rank"]
_OF_STEP = ["group", "step"]


def positions(collectives: pl.LazyFrame, steps: pl.LazyFrame | None) -> pl.LazyFrame:
    """Renumber the calls of a group step by step if its ranks did not record the same steps.

    To save time, a recorder may leave operators and their calls out of some steps, and out of different steps on each
    rank, so that the k-th recorded calls of two ranks are different calls. Positions with gaps come from the
    communication library itself and are kept.

    Returns:
        The same calls; in such groups `sequence`, their position, continues from step to step.
    """
    left_out = STEPS.or_empty(steps).filter(~pl.col("recorded")).select("rank").unique().collect()["rank"].to_list()
    if not left_out:
        return collectives
    calls = collectives.collect()
    groups = _groups(calls, left_out)
    if groups.is_empty():
        return calls.lazy()
    place = pl.col("sequence").rank("ordinal").over(*_OF_RANK, "step").cast(pl.Int64) - 1
    counted = calls.join(groups, on="group", how="semi", nulls_equal=True).select(
        "rank", "collective", *_OF_STEP, place
    )
    most = counted.group_by(_OF_STEP).agg(most=pl.col("sequence").max() + 1).sort(_OF_STEP)
    before = most.with_columns(before=(pl.col("most").cum_sum() - pl.col("most")).over("group")).drop("most")
    found = counted.join(before, on=_OF_STEP, how="left", nulls_equal=True).select(
        "rank", "collective", anew=pl.col("sequence") + pl.col("before")
    )
    joined = calls.join(found, on=["rank", "collective"], how="left", maintain_order="left")
    return joined.with_columns(sequence=pl.coalesce("anew", "sequence")).drop("anew").lazy()


def _groups(calls: pl.DataFrame, left_out: list[int]) -> pl.DataFrame:
    """The groups (`group`) to renumber."""
    step, sequence = pl.col("step"), pl.col("sequence")
    by_rank = calls.group_by(_OF_RANK).agg(
        steps=step.unique().sort().cast(pl.String).str.join(","),
        is_counted=(sequence.min() == 0) & (sequence.max() + 1 == pl.len()),
        has_steps=step.is_not_null().all(),
    )
    by_group = by_rank.group_by("group").agg(
        has_gaps=pl.col("rank").is_in(left_out).any(),
        differ=pl.col("steps").n_unique() > 1,
        can=(pl.col("is_counted") & pl.col("has_steps")).all(),
    )
    return by_group.filter(pl.col("has_gaps") & pl.col("differ") & pl.col("can")).select("group")
