"""Which ranks run the same program, so that their times can be compared: they compute and call the same, as often."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When ranks run the same program."""

    alike_ratio: float = limit(
        0.8, "of what they do, counted", "chosen by us: pipeline stages differ in more, an extra kernel in less"
    )


LIMITS = Limits()


def programs(counts: pl.DataFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Sort ranks into programs by what they do and how often.

    Ranks that do exactly the same make a set; sets are one program if what they have in common is most of what either
    does (the sum of the lower counts over the sum of the higher ones).

    Args:
        counts: `rank`, `what` (a name) and `count`, each pair once.

    Returns:
        `rank` and `program`: the lowest rank in it.
    """
    ordered = counts.sort("rank", "what")
    signature = ordered.group_by("rank", maintain_order=True).agg(
        does=pl.format("{}*{}", pl.col("what"), pl.col("count")).str.join("\n")
    )
    sets = signature.with_columns(first=pl.col("rank").min().over("does"))
    own = ordered.join(sets.filter(pl.col("rank") == pl.col("first")).select("rank"), on="rank", how="semi")
    pairs = own.join(own.rename({"rank": "other", "count": "others"}), on="what").filter(
        pl.col("rank") < pl.col("other")
    )
    totals = own.group_by("rank").agg(pl.col("count").sum())
    common = (
        pairs.group_by("rank", "other")
        .agg(common=pl.min_horizontal("count", "others").sum())
        .join(totals, on="rank")
        .join(totals.rename({"rank": "other", "count": "others"}), on="other")
    )
    ratio = pl.col("common") / (pl.col("count") + pl.col("others") - pl.col("common"))
    alike = common.filter(ratio >= limits.alike_ratio).sort("rank", "other")
    found = _united(sets["first"].unique().sort().to_list(), list(alike.select("rank", "other").iter_rows()))
    named = pl.DataFrame(
        {"first": list(found), "program": list(found.values())},
        schema_overrides={"first": sets.schema["first"], "program": sets.schema["first"]},
    )
    return sets.join(named, on="first").select("rank", "program").sort("rank")


def _united(ranks: list[int], pairs: list[tuple[int, int]]) -> dict[int, int]:
    """The lowest rank of each rank's connected set."""
    parent = {rank: rank for rank in ranks}

    def root(rank: int) -> int:
        while parent[rank] != rank:
            parent[rank] = parent[parent[rank]]
            rank = parent[rank]
        return rank

    for one, other in pairs:
        low, high = sorted((root(one), root(other)))
        parent[high] = low
    return {rank: root(rank) for rank in ranks}
