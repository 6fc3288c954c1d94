"""The smallest unit that explains why several ranks are slow alike: a host, a card, a parallel group, a stage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import polars as pl

from stepscope.analysis.methods.memberships import (
    CONTEXT,
    DATA,
    DEVICE_PAIR,
    EXPERT,
    GROUP,
    HOST,
    PIPELINE,
    REPLICA,
    STAGE,
    TENSOR,
    ranks_text,
)
from stepscope.analysis.methods.timing import ONCE
from stepscope.limits import limit

RANK, RANKS, JOB = "rank", "ranks", "job"
"""Kinds of units without a name of their own: one rank, ranks that form no unit, all of them in turn or together."""

PREFERENCE = (DEVICE_PAIR, HOST, TENSOR, STAGE, CONTEXT, EXPERT, REPLICA, PIPELINE, DATA, GROUP)
"""Which of several units with the same members is accused, of what their own work costs."""

OF_COMMUNICATION = (TENSOR, CONTEXT, EXPERT, DATA, PIPELINE, GROUP, DEVICE_PAIR, HOST, STAGE, REPLICA)
"""The same for communication: the group that communicates."""

COMMUNICATION = ("communication", "transmit")
"""Kinds of work that a group does together."""

WEAK = (PIPELINE, DATA, GROUP)
"""Units whose members share neither place nor work, so small ones are slow together by chance."""

UNITS: dict[str, pl.DataType | type[pl.DataType]] = {
    "unit_kind": pl.String,
    "unit": pl.String,
    "kind": pl.String,
    "pattern": pl.String,
    "ranks": pl.List(pl.Int32),
    "members": pl.Int32,
    "factor": pl.Float64,
    "since_step": pl.Int32,
    "until_step": pl.Int32,
    "period": pl.Int32,
    "once": pl.Int32,
    "also": pl.List(pl.String),
}


@dataclass(frozen=True)
class Limits:
    """When ranks are slow alike, and when a unit explains them."""

    members_ratio: float = limit(0.8, "of the members of a unit, slow alike", "chosen by us: one of five may be noise")
    explained_ratio: float = limit(0.7, "of the ranks that are slow alike, in units", "chosen by us: less is chance")
    alike_ratio: float = limit(1.6, "factor between the losses of ranks", "chosen by us: more is another cause")
    alike_steps: int = limit(1, "steps between the changes of ranks", "chosen by us: more is another cause")
    weak_members: int = limit(4, "members of a group that shares no place", "chosen by us: fewer may be chance")


LIMITS = Limits()


@dataclass(frozen=True)
class _Unit:
    kind: str
    name: str
    members: frozenset[int]


def units(suspects: pl.DataFrame, members: pl.DataFrame, ranks: Sequence[int], limits: Limits = LIMITS) -> pl.DataFrame:
    """Explain ranks that are slow alike by the units they make up.

    Ranks are slow alike in the same kind of work and the same pattern (with changes and periods that agree), by a
    similar factor. The unit that explains most of them comes first: its members are nearly all slow alike. Of units
    that explain as many ranks, the smaller is accused; of units with the same members, the place (card, host) for the
    ranks' own work and the group for communication, and the others are stated in `also`. A unit of all ranks explains
    nothing, as then nothing is normal. If units explain too few of the ranks, they are a coincidence.

    Args:
        suspects: One row per slow `rank` (null: the whole job), `kind` and `pattern`; if known `factor` (own time over
            typical time), `since_step`, `until_step`, `period` and `once`, the step of those that are slow in one.
        members: Result of `memberships`.
        ranks: All ranks that were compared.
        limits: What is alike, and how much of a unit must be slow.

    Returns:
        One row per accused unit with the columns of `UNITS`, those of most ranks first: `unit_kind` and `unit` as in
        `memberships`, or `rank`, `ranks` (that form no unit) and `job` (`unit` null); `ranks` (the slow ones),
        `members` (how many of the unit were compared), `factor` (median), first `since_step`, last `until_step`,
        `period`, `once`, `also` (other units with the same members, e.g. `host a`).
    """
    everyone = frozenset(ranks)
    known = _units(members, everyone, limits)
    parts = _rejoined(list(_alike(suspects, limits)), known, limits)
    rows = [row for alike in parts for row in _explained(alike, known, limits)]
    found = pl.DataFrame(rows, schema=UNITS, orient="row")
    size = pl.col("ranks").list.len()
    return found.sort(size, "kind", "pattern", "unit_kind", "unit", descending=[True, *[False] * 4], nulls_last=True)


def _units(members: pl.DataFrame, everyone: frozenset[int], limits: Limits) -> list[_Unit]:
    """The units that could explain something, of compared ranks."""
    listed = members.group_by("unit_kind", "unit").agg("rank").sort("unit_kind", "unit").iter_rows()
    known = [_Unit(kind, name, everyone.intersection(ranks)) for kind, name, ranks in listed]
    return [
        unit for unit in known if (limits.weak_members if unit.kind in WEAK else 2) <= len(unit.members) < len(everyone)
    ]


def _alike(suspects: pl.DataFrame, limits: Limits) -> Iterator[list[dict[str, Any]]]:
    """Rows of ranks that are slow alike."""
    optional = {name: UNITS[name] for name in ("factor", "since_step", "until_step", "period", "once")}
    rows = suspects.select(
        "rank",
        "kind",
        "pattern",
        *(
            (pl.col(name) if name in suspects.columns else pl.lit(None)).cast(dtype).alias(name)
            for name, dtype in optional.items()
        ),
    ).sort("kind", "pattern", "period", "once", "rank")
    for whole in rows.filter(pl.col("rank").is_null()).iter_rows(named=True):
        yield [whole]
    single = rows.filter(pl.col("rank").is_not_null())
    for same in single.partition_by("kind", "pattern", "period", "once", maintain_order=True):
        chains = [list(same.iter_rows(named=True))]
        for name in ("since_step", "until_step"):
            chains = [part for chain in chains for part in _parts(chain, name, limits)]
        yield from (part for chain in chains for part in _parts(chain, "factor", limits))


def _parts(rows: list[dict[str, Any]], name: str, limits: Limits) -> Iterator[list[dict[str, Any]]]:
    """Rows cut where a value is far from the next."""
    ordered = sorted(rows, key=lambda row: (row[name] is None, row[name] or 0, row["rank"]))
    part = ordered[:1]
    for before, row in pairwise(ordered):
        if _are_apart(before[name], row[name], name, limits):
            yield part
            part = []
        part.append(row)
    yield part


def _are_apart(low: float | None, high: float | None, name: str, limits: Limits) -> bool:
    if low is None or high is None:
        return low is not high
    if name == "factor":
        return high - 1 > limits.alike_ratio * max(low - 1, 0)
    return high - low > limits.alike_steps


def _explained(alike: Sequence[dict[str, Any]], known: Sequence[_Unit], limits: Limits) -> Iterator[tuple[object, ...]]:
    """Rows of the units that explain these suspects, and of the ranks that are left."""
    by_rank = {row["rank"]: row for row in alike}
    if None in by_rank:
        yield _row(JOB, None, alike, [], 0, [])
        return
    accused = _accused(alike, known, limits)
    left = set(by_rank)
    for unit in accused:
        slow = sorted(unit.members & left)
        left -= unit.members
        also = [f"{u.kind} {u.name}" for u in known if u.members == unit.members and u is not unit]
        yield _row(unit.kind, unit.name, [by_rank[rank] for rank in slow], slow, len(unit.members), also)
    if rest := sorted(left):
        kind = RANK if len(rest) == 1 else RANKS
        yield _row(kind, ranks_text(rest), [by_rank[rank] for rank in rest], rest, len(rest), [])


def _accused(alike: Sequence[dict[str, Any]], known: Sequence[_Unit], limits: Limits) -> list[_Unit]:
    """Units that explain ranks that are slow alike, one after the other: the one that explains most first. None if too
    many ranks are left over."""
    order = OF_COMMUNICATION if alike[0]["kind"] in COMMUNICATION else PREFERENCE
    left, accused = {row["rank"] for row in alike}, list[_Unit]()
    while True:
        fitting = [u for u in known if len(u.members & left) >= max(2, limits.members_ratio * len(u.members))]
        if not fitting:
            return accused if len(left) <= (1 - limits.explained_ratio) * len(alike) else []
        accused.append(min(fitting, key=lambda unit: _cost(unit, left, order)))
        left -= accused[-1].members


def _rejoined(
    parts: list[list[dict[str, Any]]], known: Sequence[_Unit], limits: Limits
) -> Iterator[list[dict[str, Any]]]:
    """Ranks that are slow alike, with single members of accused units that seem to be slow in another way: noise hides
    some late steps of theirs."""
    units_of = [_accused(part, known, limits) for part in parts]
    moved: dict[int, list[dict[str, Any]]] = {}
    for number, (part, accused) in enumerate(zip(parts, units_of, strict=True)):
        members = frozenset[int]().union(*(unit.members for unit in accused))
        others = (n for n in range(len(parts)) if n != number and not units_of[n])
        for other in others:
            stray = [row for row in parts[other] if row["rank"] in members and _is_stray(row, part, limits)]
            facts = {name: part[0][name] for name in ("pattern", "period", "once")}
            moved.setdefault(number, []).extend(
                {**row, **facts, "since_step": None, "until_step": None} for row in stray
            )
            parts[other] = [row for row in parts[other] if row not in stray]
    yield from (part + moved.get(number, []) for number, part in enumerate(parts) if part)


def _is_stray(row: Mapping[str, Any], part: Sequence[Mapping[str, Any]], limits: Limits) -> bool:
    """Whether a rank is slow at the same kind of work and by a similar factor as others, more than once."""
    if row["kind"] != part[0]["kind"] or row["pattern"] == ONCE or any(row["rank"] == one["rank"] for one in part):
        return False
    factors = [one["factor"] for one in part if one["factor"] is not None]
    if row["factor"] is None or not factors:
        return False
    low, high = sorted((row["factor"], sorted(factors)[len(factors) // 2]))
    return not _are_apart(low, high, "factor", limits)


def _cost(unit: _Unit, left: set[int], order: Sequence[str]) -> tuple[int, int, int, str]:
    """What explains more is better, then what is smaller, then what is preferred."""
    slow = len(unit.members & left)
    place = order.index(unit.kind) if unit.kind in order else len(order)
    return len(unit.members) - 2 * slow, len(unit.members), place, unit.name


def _row(
    unit_kind: str,
    unit: str | None,
    rows: Sequence[Mapping[str, Any]],
    ranks: list[int],
    members: int,
    also: list[str],
) -> tuple[object, ...]:
    """A row of `UNITS`."""
    first = rows[0]
    factors = sorted(row["factor"] for row in rows if row["factor"] is not None)
    since = [row["since_step"] for row in rows if row["since_step"] is not None]
    until = [row["until_step"] for row in rows if row["until_step"] is not None]
    return (
        unit_kind,
        unit,
        first["kind"],
        first["pattern"],
        ranks,
        members,
        factors[len(factors) // 2] if factors else None,
        min(since, default=None),
        max(until, default=None),
        first["period"],
        first["once"],
        also,
    )
