"""Which rank of a run is slow, and with which it is best compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stepscope.compare.side_names import SLOW, TYPICAL
from stepscope.errors import StepscopeError, Unavailable
from stepscope.run import Run
from stepscope.selection import Choice, describe_numbers, named_numbers


@dataclass(frozen=True)
class Chosen:
    """Ranks of one run to compare.

    Args:
        base: A typical rank.
        new: The slow rank, or the ranks that the user chose.
        roles: What base and new side are among the ranks: `typical`, `slow`; empty if that is not known.
        why: How they were chosen, as a sentence.
    """

    base: Sequence[int]
    new: Sequence[int]
    roles: tuple[str, str]
    why: str


def slow_and_typical(run: Run, ranks: Choice = None) -> Chosen:
    """A typical rank and the slowest one, or the chosen `ranks`.

    A typical rank is one that `slow_ranks` does not name, whose own time (without communication) is the median of the
    ranks of its pipeline stage.

    Raises:
        StepscopeError: If there is no other rank, or none is slow.
    """
    if len(run.ranks) < 2:
        raise StepscopeError(
            f"{run.name} has one rank only. Give a second run to compare it with, or «--base-steps» and «--steps»"
        )
    try:
        slow = run.analyse("slow_ranks").sort(-pl.col("cost_ns"), "rank")
    except Unavailable as reason:
        slow, unknown = None, reason.marked.rstrip(".")
    named = set[int]() if slow is None else set(slow["rank"].to_list())
    if ranks is not None:
        chosen = [rank.rank for rank in run.select(ranks=ranks).ranks]
        how = f"{named_numbers('rank', chosen)} against rank"
    elif slow is None:
        raise StepscopeError(f"which rank is slow is unknown: {unknown}. Choose «--ranks» and «--base-ranks»")
    elif slow.is_empty():
        raise StepscopeError(f"no rank of {run.name} is slower than the others. Choose «--ranks» and «--base-ranks»")
    else:
        chosen = [int(slow["rank"][0])]
        how = f"The slowest rank, {chosen[0]}, against rank"
    typical = _typical(run, [*chosen, *named], chosen) or _typical(run, chosen, chosen)
    if typical is None:
        raise StepscopeError(f"there is no rank beside {describe_numbers(chosen)} in {run.name} to compare with")
    role = SLOW if named.issuperset(chosen) else ""
    why = f"{how} {typical}, whose own time is the median of the ranks that are not slow."
    if ranks is None and (others := sorted(named.difference(chosen))):
        why += f" Slow as well: {named_numbers('rank', others)}; choose with «--ranks»."
    return Chosen([typical], chosen, (TYPICAL, role), why)


def _typical(run: Run, without: Sequence[int], chosen: Sequence[int]) -> int | None:
    """The rank with the median own time, of the stage of the first chosen rank if the others of it are known."""
    try:
        steps = run.analyse("rank_steps")
    except Unavailable:
        return next((rank.rank for rank in run.ranks if rank.rank not in without), None)
    own = steps.group_by("rank", "stage").agg(
        own_ns=(pl.col("step_ns") - pl.col("communication_not_overlapped_ns").fill_null(0)).median()
    )
    stage = own.filter(pl.col("rank").is_in(list(chosen)))["stage"]
    others = own.filter(~pl.col("rank").is_in(list(without))).sort("own_ns", "rank", nulls_last=True)
    alike = others.filter(pl.col("stage").is_in(stage.implode())) if stage.drop_nulls().len() else others
    ranked = (alike if alike.height else others)["rank"].to_list()
    return int(ranked[(len(ranked) - 1) // 2]) if ranked else None
