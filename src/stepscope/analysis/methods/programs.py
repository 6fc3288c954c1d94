"""Which ranks run the same program, so that their times can be compared: they compute and call the same, as often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.limits import limit
from stepscope.text_columns import filled_in


@dataclass(frozen=True)
class Limits:
    """When ranks run the same program."""

    alike_ratio: float = limit(
        0.9, "of what they do, counted", "chosen by us: pipeline stages differ in more, an extra kernel in less"
    )


LIMITS = Limits()

PAIRS_AT_ONCE = 5_000_000
"""Names that two ranks have in common, counted at a time: of a thousand ranks that all differ there are far more."""


def programs(counts: pl.DataFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Sort ranks into programs by what they do and how often.

    Ranks that do exactly the same make a set. Sets are one program if what they have in common is most of what either
    does (the sum of the lower counts over the sum of the higher ones), unless both have several ranks: what several
    ranks do alike and others do not is by design, as in pipeline stages of which one has a layer more.

    Args:
        counts: `rank`, `what` (a name) and `count`, each pair once.

    Returns:
        `rank` and `program`: the lowest rank in it.
    """
    ordered = counts.sort("rank", "what")
    signature = ordered.group_by("rank", maintain_order=True).agg(
        does=filled_in("{}*{}", pl.col("what"), pl.col("count")).str.join("\n")
    )
    sets = signature.with_columns(first=pl.col("rank").min().over("does"))
    own = ordered.join(sets.filter(pl.col("rank") == pl.col("first")).select("rank"), on="rank", how="semi")
    totals = own.group_by("rank").agg(pl.col("count").sum())
    common = (
        pl.concat(common_counts(own))
        .join(totals, on="rank")
        .join(totals.rename({"rank": "other", "count": "others"}), on="other")
    )
    ratio = pl.col("common") / (pl.col("count") + pl.col("others") - pl.col("common"))
    alike = common.with_columns(ratio=ratio).filter(pl.col("ratio") >= limits.alike_ratio)
    nearest = alike.sort(-pl.col("ratio"), "rank", "other").select("rank", "other")
    sizes = sets.group_by("first").len().sort("first")
    several = set(sizes.filter(pl.col("len") > 1)["first"])
    found = united(sizes["first"].to_list(), several, list(nearest.iter_rows()))
    named = pl.DataFrame(
        {"first": list(found), "program": list(found.values())},
        schema_overrides={"first": sets.schema["first"], "program": sets.schema["first"]},
    )
    return sets.join(named, on="first").select("rank", "program").sort("rank")


def common_counts(own: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """What pairs of ranks have in common, for some ranks at a time: `rank`, `other` (higher), `common` and `names`
    (how many)."""
    others = own.rename({"rank": "other", "count": "others"})
    ranks = own["rank"].n_unique()
    rows_at_once = max(1, PAIRS_AT_ONCE // max(1, ranks))
    turns = own.group_by("rank").len().sort("rank").select("rank", turn=pl.col("len").cum_sum() // rows_at_once)
    for some in turns.partition_by("turn", maintain_order=True):
        mine = own.join(some.select("rank"), on="rank", how="semi")
        pairs = mine.join(others, on="what").filter(pl.col("rank") < pl.col("other"))
        yield pairs.group_by("rank", "other").agg(common=pl.min_horizontal("count", "others").sum(), names=pl.len())
    yield own.clear().select("rank", other="rank", common="count", names=pl.col("count").cast(pl.get_index_type()))


def united(ranks: list[int], several: set[int], pairs: list[tuple[int, int]]) -> dict[int, int]:
    """The lowest rank of each rank's connected set; no two of `several` get into one."""
    parent = {rank: rank for rank in ranks}
    firm = set(several)

    def root(rank: int) -> int:
        while parent[rank] != rank:
            parent[rank] = parent[parent[rank]]
            rank = parent[rank]
        return rank

    for one, other in pairs:
        low, high = sorted((root(one), root(other)))
        if low == high or {low, high} <= firm:
            continue
        parent[high] = low
        if high in firm:
            firm.add(low)
    return {rank: root(rank) for rank in ranks}
