"""Whether ranks send to each other as a given pipeline layout has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import polars as pl

from stepscope.analysis.methods.call_patterns import stages_by_transfers, transfer_pairs
from stepscope.analysis.methods.layout_conflicts import GIVEN, TRANSFERS, Conflict
from stepscope.analysis.methods.parallel_sizes import Groups

_RINGS = ("tp", "cp", "ep")
"""Dimensions whose groups may also send and receive, e.g. parts of a sequence around a ring."""


def transfer_conflicts(
    collectives: pl.LazyFrame, groups: pl.DataFrame | None, stated: Mapping[str, Groups], world: int
) -> Iterator[Conflict]:
    """What sends and receives contradict of the given pipelines; nothing where there are none.

    Args:
        groups: Table `groups`: `group`, `members`.
        stated: The layout that is used: groups by dimension.
        world: Number of ranks.
    """
    given = stated["pp"]
    pairs = transfer_pairs(collectives, groups)
    suggested = stages_by_transfers(collectives, groups, world) if pairs else None
    fitting = {tuple(sorted(pair)) for chain in given for pair in (*pairwise(chain), (chain[0], chain[-1]))}
    rings = [set(one) for name in _RINGS for one in stated.get(name, ())]
    odd = [pair for pair in sorted(pairs) if pair not in fitting and not any(ring.issuperset(pair) for ring in rings)]
    is_odd = bool(odd) and (len(given[0]) > 1 or suggested is not None)
    if is_odd or (suggested is not None and {*map(frozenset, suggested)} != {*map(frozenset, given)}):
        size = len(suggested[0]) if suggested else None
        yield Conflict(TRANSFERS, "pp", GIVEN, len(given[0]), size, odd[0] if odd else ())
