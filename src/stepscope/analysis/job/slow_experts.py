"""Whether ranks that are slow at computing have more work for their experts, or are slower at the same work."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.job.expert_load import EXPERTS, load_of
from stepscope.analysis.job.rank_kernels import compared
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column, schema_of

CAUSES = ("load", "both", "unknown")
"""More work explains the extra time; it explains a part of it; work was not recorded, so it may be either."""


TOKENS = "tokens"
"""What tells the size of the work of experts: they rarely have equal shapes."""

SLOWER = 1.1
"""Times as long for as many tokens, from which on that is told instead of other shapes; chosen by us: fewer tokens take
longer each."""


@dataclass(frozen=True)
class Limits:
    """What counts as the experts' time, and as explained by their load."""

    experts_ratio: float = limit(0.5, "of the rank's extra time, in experts", "chosen by us: more than all else")
    alike_ratio: float = limit(
        0.5, "of what experts take longer, that all other kernels do", "chosen by us: then the device is slow"
    )
    load_ratio: float = limit(0.7, "of the extra time, that load explains", "chosen by us: the rest is noise or waits")
    named_ratio: float = limit(0.8, "of the extra time, in kernels that may be experts'", "as kernels are named")
    speed_ratio: float = limit(0.3, "of the extra time, that load explains", "chosen by us: less, and it is the device")


COLUMNS = columns(
    "rank",
    Column("cause", "string", "Why its experts take longer.", values=CAUSES),
    Column("group", "string", "Key of its group of experts; null if it is unknown which ranks are one."),
    Column("ranks", "string", "Ranks of the group."),
    Column("load_ratio", "float64", "Its load over that of the median peer; null if not recorded."),
    Column("slow_factor", "float64", "Time of its experts over that of the median peer."),
    Column("share_ratio", "float64", "Share of its extra time that is in experts."),
    Column("explained_ratio", "float64", "Share of the experts' extra time that load explains; null if not recorded."),
    Column("levelled_ratio", "float64", "Share of it that an even load would save: down to the mean of the group."),
    nulls="group load_ratio explained_ratio",
)


@analysis("job", COLUMNS, whole_job=True)
def slow_experts(
    slow_kinds: pl.DataFrame,
    expert_load: pl.DataFrame,
    kernel_classes: pl.DataFrame,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Find the ranks of `slow_ranks` that are slow at computing because of their experts: one row per rank, in order.

    A rank that is slower at all kernels, or at experts that have no more work than others, has no row: its device is
    slow.

    Raises:
        Unavailable: If no rank is slow, or no experts were recorded.
    """
    slow = slow_kinds.filter(kind="computing")["together"].explode().unique().sort().to_list()
    if not slow:
        return pl.DataFrame(schema=schema_of(COLUMNS))
    every = [] if set(kernel_classes["rank"]) <= set(slow) else slow
    times = compared(kernel_classes, every).filter(kind="compute")
    loads = expert_load.with_columns(load=load_of(), is_peer=~pl.col("rank").is_in(every))
    found = [row for rank in slow if (row := _of_rank(rank, times.filter(rank=rank), loads, limits)) is not None]
    return pl.DataFrame(found, schema=schema_of(COLUMNS), orient="row")


def _of_rank(rank: int, times: pl.DataFrame, loads: pl.DataFrame, limits: Limits) -> dict[str, Any] | None:
    """A row of the answer; None if the rank's device is slow, or something else than its experts. Where no kernel is of
    experts by name, what the rank receives must explain the extra time."""
    own = loads.filter(rank=rank)
    peers = loads.filter("is_peer", pl.col("rank") != rank)
    is_expert = pl.col("name").str.contains(EXPERTS)
    if not times.select(is_expert.any()).item():
        is_expert = pl.col("name").is_in(_unlike(times, limits))
    experts, others = times.filter(is_expert), times.filter(~is_expert)
    excess, usual = int(experts["excess_ns"].sum()), int(experts["typical_ns"].sum())
    every = int(times["excess_ns"].sum())
    if own.is_empty() or peers.is_empty() or usual <= 0 or excess <= 0 or excess < limits.experts_ratio * every:
        return None
    slower = excess / usual
    if int(others["excess_ns"].sum()) >= limits.alike_ratio * slower * int(others["typical_ns"].sum()) > 0:
        return None
    (row,) = own.head(1).to_dicts()
    ratio = _load_ratio(row, peers)
    explained = None if ratio is None else min(max((ratio - 1) / slower, 0.0), 1.0)
    if explained is not None and explained < limits.speed_ratio:
        return None
    return {
        "rank": rank,
        "cause": "unknown" if explained is None else "load" if explained >= limits.load_ratio else "both",
        "group": row["group"],
        "ranks": row["ranks"],
        "load_ratio": ratio,
        "slow_factor": 1 + slower,
        "share_ratio": min(excess / every, 1.0) if every > 0 else 1.0,
        "explained_ratio": explained,
        "levelled_ratio": _levelled_ratio(row, peers),
    }


def _unlike(times: pl.DataFrame, limits: Limits) -> list[str]:
    """Where no kernel is of experts by name: those that take most of the extra time, unless they take longer for equal
    shapes."""
    longer = times.filter(pl.col("excess_ns") > 0).sort(-pl.col("excess_ns"), "name")
    before = pl.col("excess_ns").cum_sum() - pl.col("excess_ns")
    most = longer.filter(before < limits.named_ratio * pl.col("excess_ns").sum())
    by_speed = pl.col("slower_ns").filter(pl.col("sized_by") == "shapes").sum()
    is_slower = most.select(by_speed > (1 - limits.speed_ratio) * pl.col("excess_ns").sum()).item()
    return [] if is_slower else most["name"].to_list()


def slower_for_load(reason: dict[str, Any], own: pl.DataFrame, peers: pl.DataFrame) -> dict[str, Any]:
    """The reason of a rank whose experts get other shapes than on other ranks, as in each step, if they are slower for
    as many tokens.

    Args:
        reason: `names`, `total_ns` and `typical_ns` of these kernels in a step.
        own: The rank in `expert_load`.
        peers: Ranks that are not slow.
    """
    if own.is_empty() or not all(re.search(EXPERTS, name) for name in reason["names"]) or not reason["typical_ns"]:
        return reason
    ratio = _load_ratio(own.row(0, named=True), peers)
    factor = reason["total_ns"] / reason["typical_ns"] / ratio if ratio else 0.0
    if factor < SLOWER:
        return reason
    slower = round(reason["total_ns"] * (1 - 1 / factor))
    return {**reason, "reason": "some", "factor": factor, "sized_by": TOKENS, "named_ns": slower}


def _load_ratio(own: dict[str, Any], peers: pl.DataFrame) -> float | None:
    """The rank's load over that of the median peer: by tokens or by what it receives, as inputs may be of equal size
    although less of them is used."""
    known = [(own[name], peers[name].median()) for name in ("tokens", "received") if own[name] is not None]
    return max((load / typical for load, typical in known if isinstance(typical, float) and typical > 0), default=None)


def _levelled_ratio(own: dict[str, Any], peers: pl.DataFrame) -> float:
    """How far it is to the mean of the group, of the way to the median peer."""
    typical = peers.filter(load_by=own["load_by"])["load"].median()
    beyond = own["load"] - typical if isinstance(typical, float) else 0.0
    mean = own["load"] / own["load_ratio"] if own["load_ratio"] else 0.0
    return min(max((own["load"] - mean) / beyond, 0.0), 1.0) if beyond > 0 else 1.0
