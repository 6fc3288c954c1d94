"""Parallel dimensions that names of recorded groups show: groups of each, and what in them does not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod

import polars as pl

from stepscope.analysis.methods.call_patterns import connected
from stepscope.analysis.methods.group_names import DATA_PARTS, REPLICATE, SHARD, named
from stepscope.analysis.methods.layout_conflicts import NAMES, SHARED, UNEVEN, WORLD, Conflict
from stepscope.analysis.methods.parallel_sizes import DIMENSIONS, Groups

Families = dict[frozenset[str], Groups]
"""Groups of two or more ranks by what their names say that they span, each once, in order."""


def named_dimensions(groups: pl.DataFrame | None, world: int | None, conflicts: list[Conflict]) -> dict[str, Groups]:
    """Groups by dimension, of those whose groups share no rank and are of one size.

    Data parallelism is put together from its parts: ranks that keep whole copies (`replicate`) times ranks among which
    weights are divided (`shard`). Of groups that span context parallelism as well, it is the ranks at one place of
    that. Groups of experts divide the same ranks anew: only expert parallelism itself is a dimension.

    Args:
        groups: Table `groups` of all ranks: `name`, `members`.
        world: Number of ranks, if it is known.
        conflicts: Gets what does not fit; such names are not used.
    """
    families = _families(groups)
    found: dict[str, Groups] = {}
    for name in (name for name in DIMENSIONS if name != "dp"):
        lists = families.get(frozenset((name,)), [])
        if name == "pp":
            lists = pipelines(lists)
        if name == "cp" and lists == found.get("tp"):
            continue  # Megatron's sequence parallelism is among the ranks of tensor parallelism
        if lists and _even(name, lists, conflicts):
            found[name] = lists
    if data := _data(families, found.get("cp"), conflicts):
        found["dp"] = data
    if _fits(found, world, conflicts):
        return {name: found[name] for name in DIMENSIONS if name in found}
    return {name: lists for name, lists in found.items() if name == "ep"}


def _families(groups: pl.DataFrame | None) -> Families:
    lists: dict[frozenset[str], dict[tuple[int, ...], None]] = {}
    if groups is not None:
        for name, members in groups.select("name", "members").iter_rows():
            said = named(name)
            if said.parts and not said.of_experts and members is not None and len(members) > 1:
                lists.setdefault(said.parts, {})[tuple(members)] = None
    return {parts: sorted(lists[parts]) for parts in sorted(lists, key=sorted)}


def _even(name: str, lists: Groups, conflicts: list[Conflict]) -> bool:
    """Whether groups share no rank and are of one size; else that is a conflict."""
    ranks = Counter(rank for members in lists for rank in members)
    odd = [rank for rank, count in sorted(ranks.items()) if count > 1]
    sizes = Counter(map(len, lists))
    if odd:
        conflicts.append(Conflict(UNEVEN, name, NAMES, ranks=tuple(odd)))
    elif len(sizes) > 1:
        (usual, _), *_ = sizes.most_common()
        other = next(members for members in lists if len(members) != usual)
        conflicts.append(Conflict(UNEVEN, name, NAMES, usual, len(other), other))
    return not odd and len(sizes) == 1


def _data(families: Families, context: Groups | None, conflicts: list[Conflict]) -> Groups | None:
    """Whole data-parallel groups; None if nothing names them, or their parts do not fit together."""
    parts = [one for one in families if one & DATA_PARTS and one <= DATA_PARTS | {"cp"}]
    said = frozenset[str]().union(*(one for one in parts if "cp" not in one))
    if said >= {REPLICATE, SHARD}:
        said |= {"dp"}
    # where context parallelism is named as well, only what no other name says
    used = [one for one in parts if "cp" not in one or not ("dp" in said or one - {"cp"} <= said)]
    if not all(_even("dp", families[one], conflicts) for one in used):
        return None
    each = [_without(families[one], context) for one in used]
    known = [lists for lists in each if lists]
    if len(known) < 2:
        return known[0] if known else None
    joined = connected([one for lists in known for one in lists])
    sizes = {len(one) for one in joined}
    lengths = {tuple(lists): len(lists[0]) for lists in known}
    return joined if sizes == {max(lengths.values())} or sizes == {prod(lengths.values())} else None


def _without(lists: Groups, context: Groups | None) -> Groups:
    """Groups that span whole context-parallel groups as the ranks at each place of those; others as they are."""
    inner = {rank: frozenset(one) for one in context or [] for rank in one}
    places = {rank: place for one in context or [] for place, rank in enumerate(one)}
    if not all(inner.get(rank, frozenset((-1,))) <= set(one) for one in lists for rank in one):
        return lists
    divided: dict[tuple[int, int], list[int]] = {}
    for number, one in enumerate(lists):
        for rank in one:
            divided.setdefault((number, places[rank]), []).append(rank)
    return sorted(tuple(one) for one in divided.values() if len(one) > 1)


def _fits(found: Mapping[str, Groups], world: int | None, conflicts: list[Conflict]) -> bool:
    """Whether dimensions fit together; else that is a conflict."""
    conflict = misfit(found, world)
    conflicts += [] if conflict is None else [conflict]
    return conflict is None


def misfit(found: Mapping[str, Groups], world: int | None) -> Conflict | None:
    """What does not fit: groups of two dimensions share several ranks, or the sizes do not divide all ranks."""
    dense = [name for name in DIMENSIONS if name in found and name != "ep"]
    for first, second in combinations(dense, 2):
        of_rank = {rank: set(one) for one in found[second] for rank in one}
        shared = (sorted(of_rank.get(rank, set()).intersection(one)) for one in found[first] for rank in one)
        if both := next((ranks for ranks in shared if len(ranks) > 1), None):
            return Conflict(SHARED, second, NAMES, ranks=tuple(both))
    needed = prod(len(found[name][0]) for name in dense)
    if world is not None and (world % needed or (len(dense) == len(DIMENSIONS) - 1 and needed != world)):
        return Conflict(WORLD, None, NAMES, needed, world)
    return None


def pipelines(lists: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Whole pipelines: groups of two neighbouring stages that share ranks are put together, in the order of ranks.

    Examples:
        >>> pipelines([(2, 0), (2, 4), (1, 3), (3, 5)]), pipelines([(4, 0), (5, 1)])
        ([(0, 2, 4), (1, 3, 5)], [(4, 0), (5, 1)])
    """
    ranks = [rank for members in lists for rank in members]
    if len(ranks) == len(set(ranks)):
        return list(lists)
    return connected(lists)
