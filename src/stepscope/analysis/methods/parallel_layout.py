"""The parallel layout of a job: in which groups of each dimension its ranks are, by what, and what contradicts it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

import polars as pl

from stepscope.analysis.methods.call_patterns import LIMITS, Limits, marked_data, patterns
from stepscope.analysis.methods.group_names import DATA_PARTS, named
from stepscope.analysis.methods.layout_conflicts import (
    CROSSED,
    GIVEN,
    MARKS,
    MEMBERS,
    NAMES,
    PATTERN,
    RANKS,
    REPLACED,
    SIZE,
    SIZES,
    UNUSED,
    WORLD,
    Conflict,
)
from stepscope.analysis.methods.named_dimensions import misfit, named_dimensions
from stepscope.analysis.methods.parallel_sizes import (
    DIMENSIONS,
    ORDERS,
    Groups,
    Sizes,
    given_sizes,
    recorded_sizes,
)

GROUP = "group"
"""Kind of a group whose purpose is unknown."""

RECORDED, RANK_TABLE = "recorded", "rank table"
"""What shows the host and the device of a rank; the second is a `rank_origin` as well."""

DENSE = tuple(name for name in DIMENSIONS if name != "ep")
"""Dimensions whose sizes are factors of the number of ranks."""


@dataclass
class Layout:
    """Groups by dimension (short name), what shows them, and what contradicts them.

    Pipelines of several stages are whole: groups of neighbouring stages are put together.
    """

    groups: dict[str, Groups] = field(default_factory=dict)
    by: dict[str, str] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)

    def take(self, groups: Mapping[str, Groups], by: str) -> None:
        """Fill dimensions that are not known yet."""
        for name, of_dimension in groups.items():
            if name not in self.groups:
                self.groups[name], self.by[name] = of_dimension, by


def group_kind(name: str | None) -> str:
    """What a group is for, by its name; `group` if that is unknown or several things.

    Examples:
        >>> [group_kind(name) for name in ("TENSOR_MODEL_PARALLEL_GROUP", "mesh_dp", "dp_cp", "default_pg")]
        ['tensor-parallel group', 'data-parallel group', 'group', 'group']
    """
    kinds = named_kinds(name)
    return next(iter(kinds)) if len(kinds) == 1 else GROUP


def named_kinds(name: str | None) -> frozenset[str]:
    """The kinds of parallel groups that a name says; empty if it says something else as well.

    Examples:
        >>> sorted(named_kinds("dp_cp")), named_kinds("default_pg")
        (['context-parallel group', 'data-parallel group'], frozenset())
    """
    said = named(name)
    parts = {"dp" if part in DATA_PARTS else part for part in said.parts} | ({"ep"} if said.of_experts else set())
    return frozenset(DIMENSIONS[part] for part in parts)


def parallel_groups(
    ranks: pl.DataFrame,
    groups: pl.DataFrame | None = None,
    *,
    given: str | None = None,
    collectives: pl.LazyFrame | None = None,
    steps: pl.LazyFrame | None = None,
    slices: pl.LazyFrame | None = None,
    limits: Limits = LIMITS,
) -> Layout:
    """Find the layout: recorded groups by their names, what the user gives, recorded sizes, the communication pattern.

    Args:
        ranks: Table `ranks`: `rank`, and if known `world_size`, `parallelism`.
        groups: Table `groups` of all ranks: `group`, `name`, `members`.
        given: What the user gives, see `given_sizes`.
        collectives, steps: Those tables; without them, nothing follows from the pattern of communication.
        slices: The table of that name, for marks of the framework.
        limits: When that shows a dimension.

    Raises:
        StepscopeError: If what the user gives is not understood, or does not fit the number of ranks.
    """
    world = _world(ranks)
    layout = Layout()
    layout.take(named_dimensions(groups, world, layout.conflicts), NAMES)
    if given is not None:
        sizes = given_sizes(given, world)
        stated = sizes.groups(prod(sizes.sizes.get(name, 1) for name in DENSE) if world is None else world)
        against = list(_against(layout.groups, stated, GIVEN))
        layout.conflicts += against
        if against and misfit({**stated, **layout.groups}, world):  # no layout is put together from two
            layout.conflicts.append(Conflict(UNUSED, None, GIVEN))
        else:
            layout.conflicts += _crossing(_unnamed(groups), stated)
            layout.take(stated, GIVEN)
    if world is not None:
        recorded = _recorded(ranks, world, layout)
        layout.conflicts += _replaced(recorded, layout)
        layout.take(recorded, SIZES)
    _fill(layout, world)
    if collectives is not None and not all(name in layout.groups for name in DENSE):
        known = frozenset(tuple(sorted(one)) for of_dimension in layout.groups.values() for one in of_dimension)
        found = patterns(collectives, steps, groups, world or ranks["rank"].n_unique(), known, limits)
        if not found and not layout.groups and world is not None:
            layout.take(marked_data(collectives, groups, slices, world, limits), MARKS)
        layout.take({name: of for name, of in found.items() if _fits(of, layout.groups)}, PATTERN)
        _fill(layout, world)
    return layout


def _fill(layout: Layout, world: int | None) -> None:
    """Where the known dimensions divide all ranks, each group of the others is one rank."""
    known = [name for name in DENSE if name in layout.groups]
    if world is None or not known or prod(len(layout.groups[name][0]) for name in known) != world:
        return
    by = max((layout.by[name] for name in known), key=(NAMES, GIVEN, SIZES, MARKS, PATTERN).index)
    layout.take({name: [(rank,) for rank in range(world)] for name in DENSE}, by)


def named_groups(groups: pl.DataFrame | None) -> dict[str, Groups]:
    """Members of the recorded groups of two or more ranks by kind, each once."""
    lists: dict[str, dict[tuple[int, ...], None]] = {}
    if groups is not None:
        for name, members in groups.select("name", "members").iter_rows():
            if members is not None and len(members) > 1:
                lists.setdefault(group_kind(name), {})[tuple(members)] = None
    return {kind: sorted(lists[kind]) for kind in sorted(lists)}


def _unnamed(groups: pl.DataFrame | None) -> Groups:
    """Members of the recorded groups of two or more ranks whose names say nothing of what they span."""
    if groups is None:
        return []
    rows = groups.select("name", "members").drop_nulls("members").iter_rows()
    return sorted({tuple(members) for name, members in rows if len(members) > 1 and not named(name).parts})


def _world(ranks: pl.DataFrame) -> int | None:
    """The recorded number of ranks."""
    world = ranks["world_size"].drop_nulls().max() if "world_size" in ranks.columns else None
    return world if isinstance(world, int) else None


def _against(recorded: Mapping[str, Groups], stated: Mapping[str, Groups], by: str) -> Iterator[Conflict]:
    """What recorded groups contradict of what is stated."""
    for name in (name for name in DIMENSIONS if name in recorded and name in stated):
        members = {frozenset(one) for one in stated[name]}
        other = next((one for one in recorded[name] if frozenset(one) not in members), None)
        if other is not None:
            kind = MEMBERS if len(other) == len(stated[name][0]) else SIZE
            yield Conflict(kind, name, by, len(stated[name][0]), len(other), other)


def _crossing(unnamed: Groups, stated: Mapping[str, Groups]) -> Iterator[Conflict]:
    """The first recorded group that is no block of the given layout: some of the places between its members lack."""
    places: dict[int, list[int]] = {}
    for name in (name for name in DENSE if name in stated):
        at = {rank: place for one in stated[name] for place, rank in enumerate(one)}
        for rank, place in at.items():
            places.setdefault(rank, []).append(place)
    for members in unnamed:
        known = [places[rank] for rank in members if rank in places]
        block = prod(len(set(axis)) for axis in zip(*known, strict=True))
        if len(known) == len(members) and block != len(members):
            yield Conflict(CROSSED, None, GIVEN, ranks=members)
            return


def _recorded(ranks: pl.DataFrame, world: int, layout: Layout) -> dict[str, Groups]:
    """Groups that follow from recorded sizes, in an order of ranks that the recorded groups do not contradict."""
    if "parallelism" not in ranks.columns:
        return {}
    texts = ranks.select("rank", "parallelism").drop_nulls()
    by_rank = {rank: recorded_sizes(object_of(text)) for rank, text in texts.iter_rows()}
    known = {rank: sizes for rank, sizes in sorted(by_rank.items()) if sizes.sizes}
    if not known:
        return {}
    counts = Counter(_key(sizes) for sizes in known.values())
    usual = max(counts, key=lambda key: (counts[key], key))
    others = tuple(rank for rank, sizes in known.items() if _key(sizes) != usual)
    if others:
        layout.conflicts.append(Conflict(RANKS, None, SIZES, ranks=others))
    sizes = next(sizes for sizes in known.values() if _key(sizes) == usual)
    if problem := sizes.problem(world):
        layout.conflicts.append(Conflict(WORLD, None, SIZES, *problem))
        return {}
    recorded = {name: layout.groups[name] for name, by in layout.by.items() if by == NAMES}
    for order in dict.fromkeys((sizes.order, *ORDERS)):
        groups = Sizes(sizes.sizes, order, sizes.expert_tensor).groups(world)
        if not list(_against(recorded, groups, SIZES)):
            return groups
    layout.conflicts += _against(recorded, sizes.groups(world), SIZES)
    return {}


def _replaced(recorded: Mapping[str, Groups], layout: Layout) -> Iterator[Conflict]:
    """Recorded sizes in whose place others are given."""
    for name in (name for name, by in layout.by.items() if by == GIVEN and name in recorded):
        stated, given = len(recorded[name][0]), len(layout.groups[name][0])
        if stated != given:
            yield Conflict(REPLACED, name, SIZES, stated, given)


def _key(sizes: Sizes) -> tuple[object, ...]:
    return (*sorted(sizes.sizes.items()), sizes.expert_tensor or 0)


def _fits(groups: Groups, known: Mapping[str, Groups]) -> bool:
    """Whether no group shares more than one rank with a group of another dimension, apart from expert parallelism."""
    others = [set(one) for name, of_dimension in known.items() if name != "ep" for one in of_dimension]
    return all(len(other.intersection(one)) < 2 for one in groups for other in others)


def object_of(text: str | None) -> Mapping[str, object]:
    """The object of a JSON text; empty for anything else."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
