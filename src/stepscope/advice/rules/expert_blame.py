"""What of a slow rank's cost is left to the load of its experts, for the rules that claim either."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.analysis.rank_lists import listed


@dataclass(frozen=True)
class Blame:
    """How the cost of slow ranks is divided.

    Args:
        groups: The groups of experts of these ranks; empty if it is unknown which ranks are one.
        load_ratio: The greatest load over that of the median rank; None if it was not recorded.
        left_ratio: Share of the cost that mending the ranks saves; 0 if an uneven load explains all of it, or may.
        levelled_ratio: Share that an even load of their groups saves; 0 if no group is known.
    """

    groups: list[str]
    load_ratio: float | None
    left_ratio: float
    levelled_ratio: float


def blamed_on_experts(row: dict[str, Any], slow_experts: pl.DataFrame | None) -> Blame | None:
    """How the cost of a row of `slow_ranks` is divided; None if the experts of one of its ranks are not to blame."""
    if slow_experts is None or row["kind"] != "computing":
        return None
    ranks = listed(row["ranks"])
    found = slow_experts.filter(pl.col("rank").is_in(ranks))
    if found.height < len(ranks):
        return None
    parts = [_parts(one) for one in found.iter_rows(named=True)]
    return Blame(
        groups=sorted(set(found["group"].drop_nulls())),
        load_ratio=_greatest(found["load_ratio"]),
        left_ratio=sum(left for left, _ in parts) / len(parts),
        levelled_ratio=sum(levelled for _, levelled in parts) / len(parts),
    )


def _parts(one: dict[str, Any]) -> tuple[float, float]:
    """What is left to the rank, and what to its load."""
    by_load = one["share_ratio"] * one["explained_ratio"] if one["cause"] == "both" else 1.0
    if one["group"] is None:  # nobody else claims it
        return 1 - by_load * (1 - one["levelled_ratio"]), 0.0
    return 1 - by_load, by_load * one["levelled_ratio"]


def _greatest(ratios: pl.Series) -> float | None:
    known = ratios.drop_nulls().to_list()
    return max(known, default=None)
