"""A member of a comparison that is slow."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

M = TypeVar("M", bound=Hashable)

OTHERS, PAST, OFTEN = "others", "past", "often"
"""What a member is slow beside: others, its own past, or others in single rounds again and again."""


@dataclass
class Suspect(Generic[M]):
    """A member that is slow.

    Args:
        how: Beside what.
        since: First round that counts.
        opened: Round in which it was found.
        excess: By how much, as a difference of logarithms or a share of a step; of single late rounds, in these.
        share: Share of the rounds in which it is late.
        sureness: Probability that this is not chance.
        last_late: The last round in which it was late.
    """

    member: M
    how: str
    since: int
    opened: int
    excess: float
    share: float
    sureness: float
    last_late: int
    recovery: float = 0.0
    recovered_from: int = 0
    until: int | None = None
