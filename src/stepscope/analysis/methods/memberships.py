"""Which units ranks belong to: hosts, cards, parallel groups, pipeline stages, replicas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from stepscope.analysis.methods.parallel_layout import GROUP, group_kind, named_groups, object_of, parallel_groups
from stepscope.analysis.methods.parallel_sizes import CONTEXT, DATA, DIMENSIONS, EXPERT, PIPELINE, TENSOR
from stepscope.json_values import as_index

__all__ = [
    "CONTEXT",
    "DATA",
    "DEVICE_PAIR",
    "EXPERT",
    "GROUP",
    "HOST",
    "MEMBERSHIPS",
    "PIPELINE",
    "REPLICA",
    "STAGE",
    "TENSOR",
    "group_kind",
    "memberships",
    "ranks_text",
    "stages_of",
    "stated_stage",
]

HOST, DEVICE_PAIR, STAGE, REPLICA = "host", "device pair", "pipeline stage", "replica"

MEMBERSHIPS = {"unit_kind": pl.String, "unit": pl.String, "rank": pl.Int32}

DIES = ("npu", "rocm")
"""Kinds of devices of which two may be dies of one card; then they are neighbours with an even first number."""


def memberships(
    ranks: pl.DataFrame, groups: pl.DataFrame | None = None, layout: pl.DataFrame | None = None
) -> pl.DataFrame:
    """The units that each recorded rank belongs to.

    A pipeline stage is made of the ranks of that number (`stages_of`), a replica of those at the same position in each
    data-parallel group. Parallel groups that were not recorded follow from the layout.

    Args:
        ranks: Table `ranks`: `rank`, and if known `host`, `device`, `device_kind`, `world_size`, `parallelism`.
        groups: Table `groups` of all ranks: `name`, `members`.
        layout: The answer `parallel_layout`, which also knows what the user gives and what the communication shows. By
            default, names of groups and recorded sizes count.

    Returns:
        `unit_kind`, `unit` (name of the host, number of the stage or replica, or the ranks of the group, e.g. `0-3`)
        and `rank`, in order; only units of two or more recorded ranks.
    """
    there = sorted(set(ranks["rank"].drop_nulls().to_list()))
    found = dict.fromkeys(_places(ranks))
    for kind, members in named_groups(groups).items():
        found |= dict.fromkeys((kind, unit, rank) for one in members for unit in [ranks_text(one)] for rank in one)
    places = _positions(ranks, groups) if layout is None else _answered(layout)
    of_pipelines = {rank for name, _, _, rank in places if name == "pp"}
    for name, position, unit, rank in places:
        found[DIMENSIONS[name], unit, rank] = None
        if name == "dp" and of_pipelines:  # otherwise each replica is a tensor-parallel group
            found[REPLICA, str(position), rank] = None
    found |= dict.fromkeys((STAGE, str(stage), rank) for rank, stage in stages_of(ranks, groups, layout).items())
    units = pl.DataFrame(list(found), schema=MEMBERSHIPS, orient="row").filter(pl.col("rank").is_in(there))
    shared = pl.len().over("unit_kind", "unit") > 1
    return units.filter(shared).unique(maintain_order=True).sort("unit_kind", "unit", "rank")


def stages_of(
    ranks: pl.DataFrame, groups: pl.DataFrame | None = None, layout: pl.DataFrame | None = None
) -> dict[int, int]:
    """The pipeline stage of each rank, recorded or not, in order of ranks: as its recording states it, else by the
    parallel layout; nothing if there is one stage, or it is unknown.

    Args:
        ranks: Table `ranks`.
        groups: Table `groups` of all ranks.
        layout: The answer `parallel_layout`, which has recorded ranks only. Ranks that were not recorded have the
            stages of recorded sizes and names of groups, unless it is another layout than those show.
    """
    found = _of_pipelines(_positions(ranks, groups))
    if layout is not None:
        shown = _of_pipelines(_answered(layout))
        known = layout.filter(pl.col("pp_size").is_not_null())["rank"].to_list()
        found = shown if any(found.get(rank) != shown.get(rank) for rank in known) else {**found, **shown}
    if "parallelism" in ranks.columns:
        texts = ranks.select("rank", "parallelism").drop_nulls()
        stated = ((rank, stated_stage(object_of(text))) for rank, text in texts.iter_rows())
        found |= {rank: stage for rank, stage in stated if stage is not None}
    return dict(sorted(found.items())) if len(set(found.values())) > 1 else {}


def stated_stage(parallelism: Mapping[str, object]) -> int | None:
    """The pipeline stage that a rank's recording states."""
    return as_index(parallelism.get("pipeline_stage"))


def _of_pipelines(places: list[tuple[str, int, str, int]]) -> dict[int, int]:
    return {rank: position for name, position, _, rank in places if name == "pp"}


def _positions(ranks: pl.DataFrame, groups: pl.DataFrame | None) -> list[tuple[str, int, str, int]]:
    """Dimension, position, group and rank of all ranks in dimensions of more than one."""
    layout = parallel_groups(ranks, groups)
    return [
        (name, position, unit, rank)
        for name, lists in layout.groups.items()
        for members in lists
        if len(members) > 1
        for unit in [ranks_text(members)]
        for position, rank in enumerate(members)
    ]


def _answered(layout: pl.DataFrame) -> list[tuple[str, int, str, int]]:
    """The same of the answer `parallel_layout`."""
    rows = [
        layout.filter(pl.col(f"{name}_size") > 1).select(pl.lit(name), name, f"{name}_ranks", "rank")
        for name in DIMENSIONS
    ]
    return [row for of_dimension in rows for row in of_dimension.iter_rows()]


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
