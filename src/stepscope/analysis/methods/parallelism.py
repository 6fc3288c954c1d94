"""What process groups are for, by their names or by their members: tensor, pipeline, data, context, expert."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.memberships import (
    CONTEXT,
    DATA,
    EXPERT,
    PIPELINE,
    TENSOR,
    group_kind,
    memberships,
    ranks_text,
)

KINDS = {TENSOR: "tensor", PIPELINE: "pipeline", DATA: "data", CONTEXT: "context", EXPERT: "expert"}
"""Kinds of units and the parallelism that they stand for."""

OTHER = "other"

PARALLELISMS = (*KINDS.values(), OTHER)


def parallelism_of(groups: pl.DataFrame, ranks: pl.DataFrame) -> list[str]:
    """What each group is for: by its name, else if its members are those of one kind of parallel group; else `other`.

    Args:
        groups: `name` and `members`.
        ranks: Table `ranks`, from whose recorded sizes parallel groups follow.
    """
    units = memberships(ranks, groups).filter(pl.col("unit_kind").is_in(list(KINDS)))
    kinds: dict[str, set[str]] = {}
    for kind, unit in units.select("unit_kind", "unit").unique().iter_rows():
        kinds.setdefault(unit, set()).add(kind)
    found = []
    for name, members in groups.select("name", "members").iter_rows():
        named = KINDS.get(group_kind(name))
        by_members = kinds.get(ranks_text(members), set()) if members else set()
        alone = KINDS[next(iter(by_members))] if len(by_members) == 1 else OTHER
        found.append(named or alone)
    return found
