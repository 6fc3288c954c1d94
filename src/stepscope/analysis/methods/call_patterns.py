"""Dimensions of a parallel layout that nothing names, by how their groups communicate; nothing where that is ambiguous.

Groups of one shape that divide all ranks are a family. It is of tensor parallelism if its neighbours call each other
all through the step, of data parallelism if it sums up late in the step, of expert parallelism if it exchanges uneven
parts with all, and chains of ranks that pass on what they got are pipelines. Whatever also fits something else, e.g.
weights that are gathered all through the step, is left unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from stepscope.analysis.methods.transfers import with_other
from stepscope.limits import limit
from stepscope.tables import GROUPS, STEPS
from stepscope.tables.communication import POINT_TO_POINT

Groups = list[tuple[int, ...]]

SUMS = ("all_reduce", "all_gather", "reduce_scatter")


@dataclass(frozen=True)
class Limits:
    """When calls show a dimension."""

    small_bytes: int = limit(65_536, "bytes", "chosen by us: smaller calls are sums of losses, norms, counters")
    often: float = limit(8.0, "calls of each rank and step, of tensor parallelism", "two layers, forward and backward")
    more_factor: float = limit(4.0, "times the calls of data parallelism, of tensor parallelism", "chosen by us")
    early_ratio: float = limit(
        0.3, "of the calls in the first half of the step", "chosen by us: from then on, calls go all through it"
    )
    late_ratio: float = limit(
        0.9, "of the calls after the first third of the step", "chosen by us: then they come after the forward pass"
    )


LIMITS = Limits()


@dataclass(frozen=True)
class _Family:
    """Groups of one shape that divide all ranks.

    Args:
        sums: Large calls of `SUMS` by rank and step.
        exchanges: All-to-all calls by rank and step.
        uneven: Whether the sizes of these vary.
        early, late: Shares of the large calls in the first half of the step, and after its first third.
        gathers: Whether it gathers or scatters, besides summing.
    """

    groups: Groups
    sums: float
    exchanges: float
    uneven: bool
    early: float
    late: float
    gathers: bool

    @property
    def size(self) -> int:
        return len(self.groups[0])

    @property
    def is_adjacent(self) -> bool:
        return all(one[-1] - one[0] == len(one) - 1 for one in self.groups)

    def crosses(self, other: _Family) -> bool:
        """Whether no two ranks share groups of both."""
        sets = [set(one) for one in other.groups]
        return all(len(two.intersection(one)) < 2 for one in self.groups for two in sets)


def patterns(
    collectives: pl.LazyFrame,
    steps: pl.LazyFrame | None,
    groups: pl.DataFrame | None,
    world: int,
    known: frozenset[tuple[int, ...]] = frozenset(),
    limits: Limits = LIMITS,
) -> dict[str, Groups]:
    """Groups by dimension (`tp`, `dp`, `ep`, `pp`), as far as the communication shows them beyond doubt.

    Args:
        groups: Table `groups`: `group`, `members`.
        world: Number of ranks.
        known: Members of groups whose dimension is known, in the order of ranks.
    """
    found: dict[str, Groups] = {}
    families = [one for one in _families(collectives, steps, groups, world, limits) if known.isdisjoint(one.groups)]
    experts = [one for one in families if one.exchanges > 0 and one.uneven and one.sums == 0]
    if len(experts) == 1:
        found["ep"] = experts[0].groups
    tensor = [
        (one, other)
        for one in families
        for other in families
        if one.exchanges == 0
        and one.is_adjacent
        and one.sums >= max(limits.often, limits.more_factor * other.sums)
        and one.early >= limits.early_ratio
        and _is_data(other, limits)
        and one.crosses(other)
    ]
    if len(tensor) == 1:
        found["tp"], found["dp"] = (one.groups for one in tensor[0])
    elif not tensor and len(families) == 1 and families[0].size == world and _is_data(families[0], limits):
        found["dp"] = families[0].groups
    if stages := stages_by_transfers(collectives, groups, world):
        found["pp"] = stages
    return found


_MARKS = r"^(DistributedDataParallel|FullyShardedDataParallel)\.forward$|^FSDP::"
"""Names of the ranges in which PyTorch's data parallelism runs a model."""


def marked_data(
    collectives: pl.LazyFrame, groups: pl.DataFrame | None, slices: pl.LazyFrame | None, world: int, limits: Limits
) -> dict[str, Groups]:
    """Data parallelism of all ranks (`dp`), where the framework marks that it runs the model so, and all large sums and
    exchanges are of one recorded group of all ranks; else nothing."""
    if slices is None:
        return {}
    large = pl.col("size_bytes").fill_null(limits.small_bytes) >= limits.small_bytes
    shared = pl.col("operation").is_in([*SUMS, "all_to_all"]) & large
    used = collectives.filter(shared | pl.col("operation").is_in(POINT_TO_POINT)).select("group").unique().collect()
    everyone = tuple(range(world))
    if used.height != 1 or _members(groups).get(used["group"][0]) != everyone:
        return {}
    first = slices.filter(pl.col("rank") == pl.col("rank").min())
    marks = first.filter((pl.col("category") == "annotation") & pl.col("name").str.contains(_MARKS))
    return {"dp": [everyone]} if marks.head(1).collect().height else {}


def _is_data(family: _Family, limits: Limits) -> bool:
    """Whether it sums gradients: after the forward pass, and nothing else."""
    return family.sums > 0 and family.exchanges == 0 and not family.gathers and family.late >= limits.late_ratio


def _families(
    collectives: pl.LazyFrame, steps: pl.LazyFrame | None, groups: pl.DataFrame | None, world: int, limits: Limits
) -> list[_Family]:
    """The families that communicate in steps."""
    length = pl.col("window_end_ns") - pl.col("window_start_ns")
    windows = STEPS.or_empty(steps).filter(length > 0).select("rank", "step", "window_start_ns", length=length)
    is_sum = pl.col("operation").is_in(SUMS) & (
        pl.col("size_bytes").fill_null(limits.small_bytes) >= limits.small_bytes
    )
    is_exchange = pl.col("operation") == "all_to_all"
    place = (pl.col("start_ns") - pl.col("window_start_ns")) / pl.col("length")
    called = (
        collectives.filter(is_sum | is_exchange)
        .join(windows, on=["rank", "step"])
        .group_by("group")
        .agg(
            ranks=pl.col("rank").unique().sort(),
            cells=pl.struct("rank", "step").n_unique(),
            sums=is_sum.sum(),
            exchanges=is_exchange.sum(),
            sizes=pl.col("size_bytes").filter(is_exchange).n_unique(),
            early=(is_sum & (place < 1 / 2)).sum(),
            late=(is_sum & (place >= 1 / 3)).sum(),
            gathers=(is_sum & (pl.col("operation") != "all_reduce")).sum(),
        )
        .sort("group")
        .collect()
    )
    members = _members(groups)
    found: dict[tuple[int, ...], list[tuple[tuple[int, ...], dict[str, int]]]] = defaultdict(list)
    for row in called.iter_rows(named=True):
        one = members.get(row["group"]) or tuple(row["ranks"])
        if len(one) > 1:
            found[tuple(rank - one[0] for rank in one)].append((one, row))
    return [family for rows in found.values() if (family := _family(rows, world)) is not None]


def _family(rows: Sequence[tuple[tuple[int, ...], dict[str, int]]], world: int) -> _Family | None:
    """The family of groups of one shape, if each rank is in one of them."""
    lists = sorted({members for members, _ in rows})
    if sorted(rank for members in lists for rank in members) != list(range(world)):
        return None
    total = {name: sum(row[name] for _, row in rows) for name in ("sums", "exchanges", "early", "late", "gathers")}
    cells = max(row["cells"] for _, row in rows) * len(lists)  # groups of the same members call in the same steps
    sums = max(total["sums"], 1)
    return _Family(
        lists,
        total["sums"] / cells,
        total["exchanges"] / cells,
        any(row["sizes"] > 1 for _, row in rows),
        total["early"] / sums,
        total["late"] / sums,
        total["gathers"] > 0,
    )


def _members(groups: pl.DataFrame | None) -> dict[str, tuple[int, ...]]:
    if groups is None:
        return {}
    known = groups.drop_nulls("members").unique("group", keep="first", maintain_order=True)
    return {group: tuple(sorted(members)) for group, members in known.select("group", "members").iter_rows()}


def stages_by_transfers(collectives: pl.LazyFrame, groups: pl.DataFrame | None, world: int) -> Groups | None:
    """Pipelines: chains of ranks of one length, of which the first sends before it receives, and all others receive
    first. Ranks that exchange parts in a ring, as context parallelism does, all send first."""
    calls = collectives.filter(pl.col("operation").is_in(POINT_TO_POINT)).select(
        "rank", "group", "operation", "peer", "start_ns", "step"
    )
    first = calls.sort("start_ns").group_by("rank", "step").agg(pl.col("operation").first())
    begins = first.group_by("rank").agg(ways=pl.col("operation").unique().sort()).collect()
    ways = {rank: list(words) for rank, words in begins.iter_rows()}
    ends = transfer_pairs(calls, groups)
    chains = connected(ends)
    ranks = [rank for chain in chains for rank in chain]
    sizes = {len(chain) for chain in chains}
    if sorted(ranks) != list(range(world)) or len(sizes) != 1:
        return None
    neighbours = {pair for chain in chains for pair in pairwise(chain)}
    neighbours |= {(chain[0], chain[-1]) for chain in chains}  # of interleaved stages, the last sends to the first
    in_order = all(
        ways.get(rank) == (["send"] if place == 0 else ["recv"]) for chain in chains for place, rank in enumerate(chain)
    )
    return chains if in_order and ends <= neighbours else None


def transfer_pairs(collectives: pl.LazyFrame, groups: pl.DataFrame | None) -> set[tuple[int, int]]:
    """Pairs of ranks that send and receive, the lower one first."""
    calls = collectives.filter(pl.col("operation").is_in(POINT_TO_POINT))
    members = _members(groups)
    pairs = calls.select("rank", "group", "peer").unique().sort("rank", "group", "peer").collect()
    pairs = with_other(pairs, GROUPS.or_empty(None if groups is None else groups.lazy()).collect())
    ends = (
        {*members.get(group, ())} if len(members.get(group, ())) == 2 else {rank, other} - {None}
        for rank, group, other in pairs.select("rank", "group", "other").iter_rows()
    )
    return {(min(both), max(both)) for both in ends if len(both) == 2}


def connected(lists: Iterable[tuple[int, ...]]) -> Groups:
    """Groups that share ranks put together, each in the order of ranks."""
    of_rank: dict[int, set[int]] = {}
    for members in sorted(lists):
        joined = set(members).union(*(of_rank[rank] for rank in members if rank in of_rank))
        of_rank |= dict.fromkeys(joined, joined)
    return sorted({tuple(sorted(one)) for one in of_rank.values()})
