"""Which ranks are slower than normal throughout a recording, beyond noise and chance."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.methods.always_last import chance_of_last
from stepscope.analysis.methods.chance import chance_of_late
from stepscope.analysis.methods.references import BY_RANK, MEDIAN_ERROR, WORK
from stepscope.analysis.methods.statistics import MAD_TO_SIGMA
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When a rank is slower than normal throughout."""

    excess_ratio: float = limit(0.01, "of the typical step", "chosen by us: less is not worth a look")
    score: float = limit(4.0, "standard errors", "our simulation of healthy jobs")
    spread_ratio: float = limit(0.01, "of the typical own time", "healthy devices differ by this (standard deviation)")
    spread_ranks: float = limit(10.0, "ranks", "that the assumed spread weighs as much as, beside the observed one")
    chance: float = limit(0.01, "probability, for all ranks together", "our simulation of healthy jobs")
    chance_steps: int = limit(3, "steps", "with fewer, chance cannot be told: a rank is late in all, by no stall")


LIMITS = Limits()


def lateness(
    excess: pl.DataFrame, step_ns: float, limits: Limits = LIMITS, stalled: pl.DataFrame | None = None
) -> pl.DataFrame:
    """How far each rank is above normal in its median step, and whether that is more than noise and chance.

    Noise is that of the median over steps (`sigma_ns`), or the spread of normal ranks if that is larger. A rank also
    has to be late (by half of its median excess) in more steps than chance explains, at the rate at which ranks that
    are not suspected are late by as much: so random stalls accuse nobody, however long they are. A rank whose times
    vary so much that noise hides its excess counts if it is nearly always among the latest (`chance_of_last`).

    Args:
        excess: Result of `references`.
        step_ns: Length of a typical step.
        limits: What is more than noise and chance.
        stalled: Ranks that are late by single stalls: kind, peers and rank. Of these, too few steps show nothing.

    Returns:
        One row per `kind`, `peers` and `rank`, in order: `compared_steps`, `typical_ns` and `centre_ns` (medians of
        what is typical and of the excess), `late_steps` (late by half of `centre_ns`; 0 if it is not above normal),
        `score` (`centre_ns` in standard errors; null if the noise is unknown), `chance` (that some rank is late so
        often by chance; null if the rank is no candidate or there are too few steps), `slow`, `healthy_ns` (up to which
        `centre_ns` is noise).
    """
    cells = excess.filter(pl.col("excess_ns").is_not_null())
    ranks = (
        cells.group_by(BY_RANK)
        .agg(
            compared_steps=pl.len().cast(pl.Int32),
            typical_ns=pl.col("typical_ns").median().round().cast(pl.Int64),
            centre=pl.col("excess_ns").median(),
            normal=pl.col("normal").first(),
            sigma=pl.col("sigma_ns").first(),
        )
        .with_columns(
            error=pl.col("sigma") * MEDIAN_ERROR / pl.col("compared_steps").sqrt(),
            spread=_spread(limits),
            ranks=pl.len().over(WORK),
        )
        .with_columns(score=pl.col("centre") / pl.max_horizontal("error", "spread"))
        .sort(BY_RANK)
    )
    ranks = ranks.hstack([chance_of_last(cells, ranks)["last_chance"]])
    is_last = (pl.col("last_chance") <= limits.chance) & (pl.col("centre") >= limits.score * pl.col("spread"))
    ranks = ranks.with_columns(
        candidate=(pl.col("centre") >= limits.excess_ratio * step_ns)
        & (pl.col("centre") > 0)
        & ((pl.col("score") >= limits.score).fill_null(True) | is_last)
    )
    counted = _counted(ranks, cells)
    by_stalls = counted.head(0) if stalled is None else stalled
    marked = by_stalls.select(BY_RANK).with_columns(by_stalls=pl.lit(value=True))
    counted = counted.join(marked, on=BY_RANK, how="left", nulls_equal=True, maintain_order="left")
    often = pl.col("compared_steps") >= limits.chance_steps
    always = (pl.col("late_steps") == pl.col("compared_steps")) & pl.col("by_stalls").is_null()
    return counted.with_columns(
        slow=pl.col("candidate") & pl.when(often).then(pl.col("chance") <= limits.chance).otherwise(always),
        chance=pl.when(often).then("chance"),
    ).select(
        *BY_RANK,
        "compared_steps",
        "typical_ns",
        "late_steps",
        "score",
        "chance",
        "slow",
        centre_ns=pl.col("centre").round().cast(pl.Int64),
        healthy_ns=(pl.max_horizontal("error", "spread") * limits.score).round().cast(pl.Int64),
    )


def _spread(limits: Limits) -> pl.Expr:
    """Spread of the medians of normal ranks: what is observed, but of few ranks rather what is usual."""
    normal = pl.col("centre").filter("normal")
    observed = ((normal - normal.median()).abs().median() * MAD_TO_SIGMA).over(WORK)
    ranks = pl.col("normal").sum().over(WORK)
    weight = pl.when(ranks > 3).then(ranks).otherwise(0)
    usual = limits.spread_ratio * pl.col("typical_ns").median().over(WORK)
    both = weight * observed.pow(2) + limits.spread_ranks * usual.pow(2)
    return (both / (weight + limits.spread_ranks)).sqrt()


def _counted(ranks: pl.DataFrame, cells: pl.DataFrame) -> pl.DataFrame:
    """Add in how many steps each candidate is late, and how likely that is by chance."""
    level = ranks.filter("candidate").select(*BY_RANK, level=pl.col("centre") / 2)
    own = cells.join(level, on=BY_RANK, nulls_equal=True)
    late = own.group_by(BY_RANK).agg(late_steps=(pl.col("excess_ns") > pl.col("level")).sum().cast(pl.Int32))
    rest = cells.join(ranks.filter("candidate"), on=BY_RANK, how="anti", nulls_equal=True).select(*WORK, "excess_ns")
    others = _above(level, rest)
    counted = ranks.join(late, on=BY_RANK, how="left", nulls_equal=True, maintain_order="left").join(
        others, on=BY_RANK, how="left", nulls_equal=True, maintain_order="left"
    )
    facts = counted.select("late_steps", "compared_steps", "others_late", "others_steps", "ranks").iter_rows()
    chances = [None if n is None else min(1.0, r * chance_of_late(n, s, m, t)) for n, s, m, t, r in facts]
    return counted.with_columns(pl.col("late_steps").fill_null(0), chance=pl.Series(chances, dtype=pl.Float64))


def _above(level: pl.DataFrame, rest: pl.DataFrame) -> pl.DataFrame:
    """For each candidate, how many steps of ranks that are not suspected are above its level, and out of how many."""
    steps = rest.group_by(WORK).agg(others_steps=pl.len(), values=pl.col("excess_ns").sort())
    found = level.join(steps, on=WORK, how="left", nulls_equal=True)
    above = [
        0 if values is None else len(values) - int(values.search_sorted(at, "right"))
        for values, at in zip(found["values"], found["level"], strict=True)
    ]
    return found.select(*BY_RANK, pl.col("others_steps").fill_null(0), others_late=pl.Series(above, dtype=pl.Int64))
