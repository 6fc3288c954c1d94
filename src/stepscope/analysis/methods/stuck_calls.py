"""What each member of a call between ranks did about it, from the last calls that each rank recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["waits", "left", "other operation", "other type", "other size", "missing", "no dump", "unknown"]
ROLES: tuple[Role, ...] = (
    *("other operation", "other type", "other size", "missing", "no dump", "unknown", "waits", "left"),
)
"""What a member does about a call, those that may be to blame first."""

DIFFERENT: tuple[Role, ...] = ("other operation", "other type", "other size")

ALL_ENTER = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")
"""Operations that no member can leave before all have entered them."""

_SAME_INPUT = ("all_reduce", "broadcast", "reduce", "all_gather", "gather")
_SAME_OUTPUT = ("reduce_scatter", "scatter")
"""Operations in which members that give (or get) another number of elements than the others make a mistake."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Position:
    """What the dump of a rank has of a group.

    Args:
        first: The lowest sequence number; None if it has no call of the group.
        last: The highest one.
        is_whole: Whether the dump has all calls of the rank.
    """

    first: int | None
    last: int | None
    is_whole: bool


def roles_of(
    sequence: int, members: Iterable[int], rows: Mapping[int, Row], dumps: Mapping[int, Position]
) -> dict[int, Role]:
    """What each member of a group did about its call with a sequence number.

    A rank is missing only if its dump shows it: the dump ends with an earlier call of the group, or it has all calls of
    the rank and none of the group. Calls that were overwritten by later ones accuse nobody.

    Args:
        sequence: The sequence number.
        members: The members.
        rows: Their rows of the call; of several with that number, the last (the batch of coalesced calls).
        dumps: What the dumps have of the group, by rank. Ranks without a dump are not there.
    """
    roles: dict[int, Role] = {}
    for rank in members:
        if rank in rows:
            roles[rank] = "left" if rows[rank]["is_done"] else "waits"
        elif rank not in dumps:
            roles[rank] = "no dump"
        elif (last := dumps[rank].last) is None:
            roles[rank] = "missing" if dumps[rank].is_whole else "unknown"
        else:
            roles[rank] = "missing" if last < sequence else "unknown"
    return roles | _different({rank: rows[rank] for rank in roles if rank in rows})


def _different(rows: Mapping[int, Row]) -> dict[int, Role]:
    """The ranks that called something else than most others; all of them if there is no majority."""
    found: dict[int, Role] = {}
    operations = {rank: row["operation"] for rank, row in rows.items()}
    found |= dict.fromkeys(_fewer(operations), "other operation")
    if found:
        return found
    types = {rank: row["element_type"] for rank, row in rows.items() if row["element_type"]}
    found |= dict.fromkeys(_fewer(types), "other type")
    operation = next(iter(operations.values()), "")
    side = "input" if operation in _SAME_INPUT else "output" if operation in _SAME_OUTPUT else ""
    counts = {rank: row[f"{side}_elements"] for rank, row in rows.items() if side}
    known = {rank: count for rank, count in counts.items() if count is not None}
    sizes: dict[int, Role] = dict.fromkeys(_fewer(known), "other size")
    return sizes | found


def _fewer(values: Mapping[int, Hashable]) -> list[int]:
    """The ranks whose value is not that of more than half of them; none if all agree."""
    counted = Counter(values.values()).most_common()
    if len(counted) < 2:
        return []
    usual, count = counted[0]
    return [rank for rank, value in values.items() if 2 * count <= len(values) or value != usual]


def usual_row(rows: Mapping[int, Row], roles: Mapping[int, Role]) -> Row:
    """The row of a member that did as most others, for what the call is."""
    agreeing = [rank for rank in sorted(rows) if roles[rank] not in DIFFERENT]
    return rows[agreeing[0] if agreeing else min(rows)]


def unmatched(calls: Sequence[Row]) -> list[tuple[Row, Row | None]]:
    """Open point-to-point calls, each with the open call of the other side that belongs to it; None if there is none.

    Both sides leave their calls in order, so the first call that one side has not left belongs to the first that the
    other side has not left, also if earlier calls were overwritten. Only the first of each rank, peer and direction is
    given, as the others wait behind it.
    """
    first: dict[tuple[str, int, int, str], Row] = {}
    for row in sorted(calls, key=lambda row: int(row["record"])):
        if row["peer"] is not None and row["operation"] in ("send", "recv"):
            first.setdefault((row["group"], row["rank"], row["peer"], row["operation"]), row)
    pairs = []
    for (group, rank, peer, operation), row in sorted(first.items()):
        other = first.get((group, peer, rank, "recv" if operation == "send" else "send"))
        if other is None or rank < peer or (rank == peer and operation == "send"):
            pairs.append((row, other))
    return pairs
