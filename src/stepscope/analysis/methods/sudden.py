"""In which single steps a rank takes longer for its own work than a random stall of it explains.

Of 400 simulated healthy jobs (2 to 20 steps, 4 to 32 ranks; stalls of 1 to 20 ms at rates of 0.01 to 1 a step, uneven
batches of up to 10 %), single steps accuse nobody, and late steps of all patterns a rank of 2. A rank that computes 1.5
times as long in one of 2 steps is found among 4 ranks and more; 1.3 times among 8, or in one of 3 steps; 1.15 times in
one of 4 steps among 8.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import polars as pl

from stepscope.analysis.methods.chance import chance_of_score
from stepscope.analysis.methods.references import BY_RANK, WORK
from stepscope.limits import limit

MARKED = ("garbage_collection", "checkpoint", "compile")
"""Kinds of work whose cause is recorded, so that one time is enough."""

STALLS = "dispatch"
"""The kind of work in which a host's stalls appear that nothing marks."""

CELL = [*BY_RANK, "step"]


@dataclass(frozen=True)
class Limits:
    """When a single step of a rank is slow, and no random stall is the reason."""

    stalls: int = limit(3, "pieces of work, the longest of a step", "chosen by us: random stalls of a step are fewer")
    rest_ratio: float = limit(0.5, "of the excess, in all other pieces", "our simulation: stalls leave next to nothing")
    excess_ratio: float = limit(0.1, "of the typical own time, beyond the rank's other steps", "uneven batches differ")
    chance: float = limit(0.001, "probability, for all steps of all ranks together", "our simulation of healthy jobs")
    spread_ratio: float = limit(0.03, "of the typical own time", "noise that is assumed before any was seen")
    spread_weight: float = limit(3.0, "degrees of freedom", "of that noise, beside the observed one")
    shown: float = limit(0.37, "degrees of freedom of each deviation", "what a median of deviations shows of a spread")
    step_ratio: float = limit(0.05, "of the typical step, of marked work", "chosen by us: less is not worth a look")


LIMITS = Limits()


def sudden(
    excess: pl.DataFrame, work: pl.DataFrame, step_ns: float, starts: Collection[int] = (), limits: Limits = LIMITS
) -> pl.DataFrame:
    """Find steps of ranks that are far above the rank's other steps and above its peers, for no random reason.

    A stall of a host, for whatever reason, makes one piece of its work longer, and may strike any rank. It is no chance
    if the whole step is slower: without the longest pieces, most of the excess is still there, and it is far beyond the
    noise of the recording. Nor is work that is marked, such as garbage collection: its cause is known.

    Args:
        excess: Result of `references`.
        work: Pieces of work: `rank`, `step`, `kind`, `start_ns`, `end_ns`.
        step_ns: Length of a typical step.
        starts: Steps in which a recording or a program starts up: these show nothing.
        limits: What is no chance.

    Returns:
        One row per kind, set of peers, rank and step, in order.
    """
    above = _beyond_others(excess.filter(pl.col("excess_ns").is_not_null())).filter(
        ~pl.col("step").is_in(sorted(starts)), pl.col("beyond") > 0
    )
    marked = above.filter(pl.col("kind").is_in(MARKED), pl.col("beyond") >= limits.step_ratio * step_ns)
    far = _far(above.filter(~pl.col("kind").is_in(MARKED)), limits)
    whole = _without_stalls(far, excess, work, limits)
    return pl.concat([marked.select(CELL), whole.select(CELL)]).sort(CELL, nulls_last=True)


def stalled(excess: pl.DataFrame, work: pl.DataFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Find the ranks that launch late only because of stalls in a step: kind, peers and rank, in order."""
    late = excess.filter(pl.col("kind") == STALLS, pl.col("excess_ns") > 0).with_columns(beyond="excess_ns")
    by_stalls = late.join(_without_stalls(late, excess, work, limits), on=CELL, how="anti", nulls_equal=True)
    return by_stalls.select(BY_RANK).unique().sort(BY_RANK, nulls_last=True)


def _beyond_others(cells: pl.DataFrame) -> pl.DataFrame:
    """The steps of ranks that have several, with `beyond`: the excess beyond the (lower) median of the rank's other
    steps."""
    place = pl.col("excess_ns").rank("ordinal").over(BY_RANK).cast(pl.Int64) - 1
    middle = (pl.len().over(BY_RANK).cast(pl.Int64) - 2) // 2
    ranks, steps = pl.col("rank").n_unique().over(WORK), pl.col("step").n_unique().over(WORK)
    several = cells.with_columns(place=place, middle=middle, cells=pl.len().over(WORK), ranks=ranks, steps=steps)
    listed = several.filter(pl.col("middle") >= 0).with_columns(
        at=pl.when(pl.col("middle") < pl.col("place")).then("middle").otherwise(pl.col("middle") + 1)
    )
    usual = listed.select(*BY_RANK, at="place", usual="excess_ns")
    found = listed.join(usual, on=[*BY_RANK, "at"], how="left", nulls_equal=True, maintain_order="left")
    return found.with_columns(beyond=pl.col("excess_ns") - pl.col("usual").clip(lower_bound=0))


def _far(above: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """The steps that are further above normal than noise explains. What the recording shows of its noise counts as much
    as there are ranks and steps."""
    far = above.filter(pl.col("beyond") >= limits.excess_ratio * pl.col("typical_ns"), pl.col("sigma_ns") > 0)
    seen = limits.shown * (pl.col("ranks") - 1) * (pl.col("steps") - 1)
    usual = (limits.spread_ratio * pl.col("typical_ns")).pow(2) * limits.spread_weight
    freedom = limits.spread_weight + seen
    noise = ((usual + seen * pl.col("sigma_ns").pow(2)) / freedom).sqrt()
    scored = far.with_columns(score=pl.col("beyond") / noise, freedom=freedom)
    facts = scored.select("cells", "score", "freedom").iter_rows()
    likely = [cells * chance_of_score(score, int(freedom)) for cells, score, freedom in facts]
    return scored.filter(pl.Series(likely, dtype=pl.Float64) <= limits.chance)


def _without_stalls(far: pl.DataFrame, excess: pl.DataFrame, work: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """The steps of which most of the excess is left without the longest pieces of each rank."""
    among = [*WORK, "step"]
    compared = excess.select(CELL).join(far.select(among).unique(), on=among, how="semi", nulls_equal=True)
    length = pl.col("end_ns") - pl.col("start_ns")
    pieces = work.join(compared, on=["rank", "step", "kind"], how="inner")
    rest = pieces.group_by(CELL).agg(rest=length.sum() - length.top_k(limits.stalls).sum())
    # the lower quarter, as half of the ranks may be slow
    typical = pl.col("rest").quantile(0.25, "lower").over(among)
    left = rest.with_columns(left=pl.col("rest") - typical)
    found = far.join(left, on=CELL, how="inner", nulls_equal=True)
    return found.filter(pl.col("left") >= limits.rest_ratio * pl.col("beyond"))
