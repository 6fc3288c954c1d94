"""Which units ranks belong to: hosts, cards, parallel groups, pipeline stages, replicas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

HOST, DEVICE_PAIR, STAGE, REPLICA, GROUP = "host", "device pair", "pipeline stage", "replica", "group"
TENSOR, PIPELINE, DATA = "tensor-parallel group", "pipeline-parallel group", "data-parallel group"
CONTEXT, EXPERT = "context-parallel group", "expert-parallel group"

MEMBERSHIPS = {"unit_kind": pl.String, "unit": pl.String, "rank": pl.Int32}

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

SIZES = {
    TENSOR: ("tensor_model_parallel_size", "tensor_parallel_size", "tensor_parallel", "tp", "model_parallel"),
    CONTEXT: ("context_parallel_size", "context_parallel", "cp"),
    PIPELINE: ("pipeline_model_parallel_size", "pipeline_parallel_size", "pipeline_stage", "stage_num", "pp"),
}
"""Names of recorded parallel sizes."""

DIES = ("npu", "rocm")
"""Kinds of devices of which two may be dies of one card; then they are neighbours with an even first number."""


def group_kind(name: str | None) -> str:
    """What a group is for, by its name; `group` if that is unknown or several things.

    Examples:
        >>> [group_kind(name) for name in ("TENSOR_MODEL_PARALLEL_GROUP", "mesh_dp", "dp_cp", "default_pg")]
        ['tensor-parallel group', 'data-parallel group', 'group', 'group']
    """
    words = [word for word in re.findall("[a-z]+", (name or "").lower()) if word not in FILLERS]
    kinds = {GROUP_WORDS.get(word, GROUP) for word in words}
    return kinds.pop() if len(kinds) == 1 else GROUP


def memberships(ranks: pl.DataFrame, groups: pl.DataFrame | None = None) -> pl.DataFrame:
    """The units that each recorded rank belongs to.

    A pipeline stage is made of the ranks at the same position in each pipeline-parallel group, a replica of those at
    the same position in each data-parallel group. Parallel groups that were not recorded follow from the recorded
    parallel sizes, in the usual order of ranks (tensor, context, data, pipeline).

    Args:
        ranks: Table `ranks`: `rank`, and if known `host`, `device`, `device_kind`, `world_size`, `parallelism`.
        groups: Table `groups` of all ranks: `name`, `members`.

    Returns:
        `unit_kind`, `unit` (name of the host, number of the stage or replica, or the ranks of the group, e.g. `0-3`)
        and `rank`, in order; only units of two or more recorded ranks.
    """
    there = sorted(set(ranks["rank"].drop_nulls().to_list()))
    found = dict.fromkeys(_places(ranks))
    lists = _group_lists(groups)
    for kind, lists_of_kind in _sized(ranks).items():
        lists.setdefault(kind, lists_of_kind)
    for kind, members in lists.items():
        found |= dict.fromkeys((kind, ranks_text(one), rank) for one in members for rank in one)
    if PIPELINE in lists:  # otherwise each stage is the whole job, and each replica a tensor-parallel group
        found |= dict.fromkeys(_positions(STAGE, _pipelines(lists[PIPELINE])))
        found |= dict.fromkeys(_positions(REPLICA, lists.get(DATA, [])))
    units = pl.DataFrame(list(found), schema=MEMBERSHIPS, orient="row").filter(pl.col("rank").is_in(there))
    shared = pl.len().over("unit_kind", "unit") > 1
    return units.filter(shared).sort("unit_kind", "unit", "rank")


def stages(ranks: pl.DataFrame, groups: pl.DataFrame | None = None) -> dict[int, int]:
    """The pipeline stage of each rank, recorded or not; nothing if the job has no pipeline or it is unknown.

    Args:
        ranks, groups: As for `memberships`.
    """
    lists = {**_sized(ranks), **_group_lists(groups)}
    return {rank: int(stage) for _, stage, rank in _positions(STAGE, _pipelines(lists.get(PIPELINE, [])))}


def ranks_text(ranks: Sequence[int]) -> str:
    """Ranks as people write them.

    Examples:
        >>> ranks_text([4, 5, 6, 7]), ranks_text([0, 1, 5]), ranks_text([1, 5, 9])
        ('4-7', '0, 1, 5', '1, 5, 9')
    """
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    texts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(texts)


def _places(ranks: pl.DataFrame) -> Iterator[tuple[str, str, int]]:
    """Hosts, and pairs of devices that may be dies of one card."""
    names = ("rank", "host", "device", "device_kind")
    facts = ranks.select(pl.col(name) if name in ranks.columns else pl.lit(None).alias(name) for name in names)
    for rank, host, device, device_kind in facts.drop_nulls("rank").iter_rows():
        if host is not None:
            yield HOST, host, rank
        if host is not None and device is not None and device_kind in DIES:
            first = device - device % 2
            yield DEVICE_PAIR, f"{host}: {first}, {first + 1}", rank


def _group_lists(groups: pl.DataFrame | None) -> dict[str, list[tuple[int, ...]]]:
    """Members of the recorded groups by kind, each once."""
    lists: dict[str, dict[tuple[int, ...], None]] = {}
    if groups is not None:
        for name, members in groups.select("name", "members").iter_rows():
            if members is not None and len(members) > 1:
                lists.setdefault(group_kind(name), {})[tuple(members)] = None
    return {kind: sorted(lists[kind]) for kind in sorted(lists)}


def _sized(ranks: pl.DataFrame) -> dict[str, list[tuple[int, ...]]]:
    """Members of the parallel groups that follow from recorded sizes; nothing if these do not fit the job."""
    if not {"parallelism", "world_size"} <= set(ranks.columns):
        return {}
    texts, worlds = ranks["parallelism"].drop_nulls(), ranks["world_size"].drop_nulls()
    sizes, world = _object(texts[0] if len(texts) else None), worlds.max()
    if not sizes or not isinstance(world, int):
        return {}
    tensor, context, pipeline = (_size(sizes, names) for names in SIZES.values())
    inner = tensor * context * pipeline
    if inner <= 1 or world % inner:
        return {}
    shape = {TENSOR: tensor, CONTEXT: context, DATA: world // inner, PIPELINE: pipeline}
    lists, stride = {}, 1
    for kind, size in shape.items():
        if size > 1:
            firsts = [rank for rank in range(world) if rank // stride % size == 0]
            lists[kind] = [tuple(first + stride * k for k in range(size)) for first in firsts]
        stride *= size
    return lists


def _object(text: str | None) -> Mapping[str, object]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _size(sizes: Mapping[str, object], names: Sequence[str]) -> int:
    """The first recorded size of these names; 1 if there is none."""
    known = (sizes.get(name) for name in names)
    return next((size for size in known if isinstance(size, int) and not isinstance(size, bool) and size > 0), 1)


def _pipelines(lists: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Whole pipelines: groups of two neighbouring stages that share ranks are put together, in the order of ranks.

    Examples:
        >>> _pipelines([(2, 0), (2, 4), (1, 3), (3, 5)]), _pipelines([(4, 0), (5, 1)])
        ([(0, 2, 4), (1, 3, 5)], [(4, 0), (5, 1)])
    """
    ranks = [rank for members in lists for rank in members]
    if len(ranks) == len(set(ranks)):
        return list(lists)
    joined: list[set[int]] = []
    for members in lists:
        touching = [one for one in joined if not one.isdisjoint(members)]
        joined = [one for one in joined if one not in touching] + [set(members).union(*touching)]
    return sorted(tuple(sorted(one)) for one in joined)


def _positions(kind: str, lists: Sequence[tuple[int, ...]]) -> Iterator[tuple[str, str, int]]:
    """Ranks at the same position in each of several groups of one size that share no rank."""
    ranks = [rank for members in lists for rank in members]
    if len({len(members) for members in lists}) == 1 and len(ranks) == len(set(ranks)):
        for members in lists:
            yield from ((kind, str(position), rank) for position, rank in enumerate(members))
