"""What process groups are for, by their names or by their members: tensor, pipeline, data, context, expert."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.group_names import DATA_PARTS, named
from stepscope.analysis.methods.memberships import memberships, ranks_text
from stepscope.analysis.methods.parallel_sizes import CONTEXT, DATA, DIMENSIONS, EXPERT, PIPELINE, TENSOR

KINDS = {TENSOR: "tensor", PIPELINE: "pipeline", DATA: "data", CONTEXT: "context", EXPERT: "expert"}
"""Kinds of units and the parallelism that they stand for."""

OTHER = "other"

PARALLELISMS = (*KINDS.values(), OTHER)


def parallelism_of(groups: pl.DataFrame, ranks: pl.DataFrame, layout: pl.DataFrame | None) -> list[str]:
    """What each group is for: by its name, else, unless a group with a name has the same
    members, if they are those of one kind of parallel group; else `other`.

    Args:
        groups: `name` and `members`.
        ranks: Table `ranks`.
        layout: The answer `parallel_layout`, if there is one.
    """
    units = memberships(ranks, groups, layout).filter(pl.col("unit_kind").is_in(list(KINDS)))
    kinds: dict[str, set[str]] = {}
    for kind, unit in units.select("unit_kind", "unit").unique().iter_rows():
        kinds.setdefault(unit, set()).add(kind)
    rows = list(groups.select("name", "members").iter_rows())
    named = [_named(name) for name, _ in rows]
    # a group of all ranks has the members of a named one where there is one such group, and other purposes
    for (_, members), kind in zip(rows, named, strict=True):
        if kind and members:
            kinds[ranks_text(members)] = set()
    found = []
    for (_, members), kind in zip(rows, named, strict=True):
        by_members = kinds.get(ranks_text(members), set()) if members else set()
        alone = KINDS[next(iter(by_members))] if len(by_members) == 1 else OTHER
        found.append(kind or alone)
    return found


def only_parallelism(layout: pl.DataFrame | None) -> str:
    """What a job is divided by, if all is known of its layout and that is one dimension; else `other`.

    Args:
        layout: The answer `parallel_layout`, if there is one.
    """
    if layout is None:
        return OTHER
    sizes = {name: layout[f"{name}_size"].unique().to_list() for name in DIMENSIONS}
    divided = [name for name, found in sizes.items() if found != [1] and not (name == "ep" and found == [None])]
    return KINDS[DIMENSIONS[divided[0]]] if len(divided) == 1 and None not in sizes[divided[0]] else OTHER


def _named(name: str | None) -> str | None:
    """What a group is for by its name; None if that does not say. Gradients are reduced over data and context
    parallelism, those of experts over the ranks that have the same ones; tokens are sent over tensor parallelism and
    experts."""
    said = named(name)
    if said.together:
        return KINDS[EXPERT]
    if said.parts & DATA_PARTS and said.parts <= DATA_PARTS | {"cp"}:
        return KINDS[DATA]
    return KINDS[DIMENSIONS[next(iter(said.parts))]] if len(said.parts) == 1 else None
