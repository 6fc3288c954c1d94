"""The parallel layout of a job: in which groups of each dimension its ranks are, by what, and what contradicts it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import polars as pl

from stepscope.analysis.methods.call_patterns import LIMITS, Limits, connected, patterns
from stepscope.analysis.methods.parallel_sizes import (
    CONTEXT,
    DATA,
    DIMENSIONS,
    EXPERT,
    ORDERS,
    PIPELINE,
    TENSOR,
    Groups,
    Sizes,
    given_sizes,
    recorded_sizes,
)

GROUP = "group"
"""Kind of a group whose purpose is unknown."""

GIVEN, NAMES, SIZES, PATTERN = "given", "group names", "recorded sizes", "communication"
"""What shows a dimension. Names of recorded groups go before what is given, which goes before the rest."""

RECORDED, RANK_TABLE = "recorded", "rank table"
"""What shows the host and the device of a rank; the second is a `rank_origin` as well."""

GROUP_WORDS = {
    **dict.fromkeys(("tp", "tensor", "mp"), TENSOR),
    **dict.fromkeys(("pp", "pipeline", "pipe"), PIPELINE),
    **dict.fromkeys(("dp", "data", "ddp", "fsdp", "zero"), DATA),
    **dict.fromkeys(("cp", "context", "sp", "sequence"), CONTEXT),
    **dict.fromkeys(("ep", "expert", "exp", "moe"), EXPERT),
}
"""Words in names of groups, as Megatron, DeepSpeed, MindSpeed, MindSpore and PyTorch's device meshes write them."""

FILLERS = frozenset(
    ("model", "parallel", "group", "groups", "mesh", "pg", "process", "comm", "hccl", "nccl", "gloo", "new", "stream")
)
"""Words in names of groups that say nothing of their purpose."""

_JOINING = ("modulo", "and", "with", "without")
"""Words between two purposes."""

DENSE = tuple(name for name in DIMENSIONS if name != "ep")
"""Dimensions whose sizes are factors of the number of ranks."""

SIZE, MEMBERS, UNEVEN, WORLD, RANKS, CROSSED = "size", "members", "uneven", "world", "ranks", "crossed"
REPLACED = "replaced"
"""Kinds of contradictions; see `Conflict`."""


@dataclass(frozen=True)
class Conflict:
    """A contradiction, and what it means for the layout.

    Args:
        kind: `size`: what is stated has another size than the recorded groups; `members`: other members; `uneven`:
            recorded groups of one name overlap or differ in size; `world`: sizes need another number of ranks; `ranks`:
            some ranks recorded other sizes than most; `crossed`: a recorded group lies across the given layout;
            `replaced`: the given size is another than the recorded one.
        dimension: Short name; None if it is about all.
        by: What is contradicted: given or recorded sizes, or names of groups.
        stated, found: Sizes or numbers of ranks, as far as the kind has them.
        ranks: Ranks that show it, e.g. the members of one group.
    """

    kind: str
    dimension: str | None
    by: str
    stated: int | None = None
    found: int | None = None
    ranks: tuple[int, ...] = ()


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
    words = [word for word in re.findall("[a-z]+", (name or "").lower()) if word not in FILLERS]
    kinds = {GROUP_WORDS.get(word) for word in words if word not in _JOINING}
    return frozenset() if None in kinds else frozenset(kind for kind in kinds if kind)


def parallel_groups(
    ranks: pl.DataFrame,
    groups: pl.DataFrame | None = None,
    *,
    given: str | None = None,
    collectives: pl.LazyFrame | None = None,
    steps: pl.LazyFrame | None = None,
    limits: Limits = LIMITS,
) -> Layout:
    """Find the layout: recorded groups by their names, what the user gives, recorded sizes, the communication pattern.

    Args:
        ranks: Table `ranks`: `rank`, and if known `world_size`, `parallelism`.
        groups: Table `groups` of all ranks: `group`, `name`, `members`.
        given: What the user gives, see `given_sizes`.
        collectives, steps: Those tables; without them, nothing follows from the pattern of communication.
        limits: When that shows a dimension.

    Raises:
        StepscopeError: If what the user gives is not understood, or does not fit the number of ranks.
    """
    world = _world(ranks)
    named = named_groups(groups)
    layout = Layout()
    layout.take(_sound(named, layout.conflicts), NAMES)
    if given is not None:
        sizes = given_sizes(given, world)
        stated = sizes.groups(prod(sizes.sizes.get(name, 1) for name in DENSE) if world is None else world)
        layout.conflicts += _against(layout.groups, stated, GIVEN)
        layout.conflicts += _crossing(named.get(GROUP, []), stated)
        layout.take(stated, GIVEN)
    if world is not None:
        recorded = _recorded(ranks, world, layout)
        layout.conflicts += _replaced(recorded, layout)
        layout.take(recorded, SIZES)
    _fill(layout, world)
    if collectives is not None and not all(name in layout.groups for name in DENSE):
        known = frozenset(tuple(sorted(one)) for of_dimension in layout.groups.values() for one in of_dimension)
        found = patterns(collectives, steps, groups, world or ranks["rank"].n_unique(), known, limits)
        layout.take({name: of for name, of in found.items() if _fits(of, layout.groups)}, PATTERN)
        _fill(layout, world)
    return layout


def _fill(layout: Layout, world: int | None) -> None:
    """Where the known dimensions divide all ranks, each group of the others is one rank."""
    known = [name for name in DENSE if name in layout.groups]
    if world is None or not known or prod(len(layout.groups[name][0]) for name in known) != world:
        return
    by = max((layout.by[name] for name in known), key=(NAMES, GIVEN, SIZES, PATTERN).index)
    layout.take({name: [(rank,) for rank in range(world)] for name in DENSE}, by)


def named_groups(groups: pl.DataFrame | None) -> dict[str, Groups]:
    """Members of the recorded groups of two or more ranks by kind, each once."""
    lists: dict[str, dict[tuple[int, ...], None]] = {}
    if groups is not None:
        for name, members in groups.select("name", "members").iter_rows():
            if members is not None and len(members) > 1:
                lists.setdefault(group_kind(name), {})[tuple(members)] = None
    return {kind: sorted(lists[kind]) for kind in sorted(lists)}


def _world(ranks: pl.DataFrame) -> int | None:
    """The recorded number of ranks."""
    world = ranks["world_size"].drop_nulls().max() if "world_size" in ranks.columns else None
    return world if isinstance(world, int) else None


def _sound(named: Mapping[str, Groups], conflicts: list[Conflict]) -> dict[str, Groups]:
    """The named groups of each dimension, of those whose groups share no rank and are of one size."""
    found = {}
    for name, kind in DIMENSIONS.items():
        lists = named.get(kind, [])
        if kind == PIPELINE:
            lists = pipelines(lists)
        ranks = Counter(rank for members in lists for rank in members)
        odd = [rank for rank, count in sorted(ranks.items()) if count > 1]
        sizes = Counter(map(len, lists))
        if odd:
            conflicts.append(Conflict(UNEVEN, name, NAMES, ranks=tuple(odd)))
        elif len(sizes) > 1:
            (usual, _), *_ = sizes.most_common()
            other = next(members for members in lists if len(members) != usual)
            conflicts.append(Conflict(UNEVEN, name, NAMES, usual, len(other), other))
        elif lists:
            found[name] = lists
    return found


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
