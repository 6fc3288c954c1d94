"""Which rank a suspect is compared with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from stepscope.live.messages import Group

_SAME_WORK = ("dp", "fsdp", "replicate", "tp", "cp", "data", "tensor")
"""Names of groups whose members do the same work."""
_OTHER_WORK = ("pp", "pipeline")


@dataclass(frozen=True)
class RankFacts:
    """What is known of a rank that takes part."""

    rank: int
    host: str
    device: str = ""
    framework: str = ""
    groups: list[Group] = field(default_factory=list)


def comparable(suspect: int, facts: Mapping[int, RankFacts], accused: Collection[int]) -> int | None:
    """The rank whose work is most like that of a suspect, and that nobody accuses; None if there is none.

    A member of a data- or tensor-parallel group is best, then of the smallest other group that is no pipeline, then any
    rank; of equals one on another host, since a slow host slows its other ranks as well, then the nearest number.
    """
    own = facts.get(suspect)
    if own is None:
        return None
    there = [
        one
        for one in facts.values()
        if one.rank not in accused
        and one.rank != suspect
        and (one.device, one.framework) == (own.device, own.framework)
    ]
    if not there:
        return None
    return min(
        there, key=lambda one: (_distance(own, one.rank), one.host == own.host, abs(one.rank - suspect), one.rank)
    ).rank


def _distance(own: RankFacts, other: int) -> tuple[int, int]:
    shared = [group for group in own.groups if other in group.members]
    sizes = {True: [], False: []}  # type: dict[bool, list[int]]
    for group in shared:
        name = group.name.lower()
        if any(word in name for word in _SAME_WORK):
            sizes[True].append(len(group.members))
        elif not any(word in name for word in _OTHER_WORK):
            sizes[False].append(len(group.members))
    if sizes[True]:
        return 0, min(sizes[True])
    return (1, min(sizes[False])) if sizes[False] else (2, 0)
