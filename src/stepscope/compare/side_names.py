"""What the two sides of a comparison are called: `base` and `new` of two runs, else what tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepscope.run import Run
from stepscope.selection import named_numbers

TYPICAL, SLOW = "typical", "slow"
"""Roles of ranks of one run."""

LONGEST = 24
"""Characters of a name; longer ones make tables of figures unreadable."""


@dataclass(frozen=True)
class SideName:
    """What a side is called.

    Args:
        label: `base` or `new`; of one run its ranks or steps, e.g. `rank 7`, `steps 1-6`.
        role: `typical` or `slow`, if it was chosen for that; else empty.
    """

    label: str
    role: str = ""

    @property
    def whole(self) -> str:
        """The label with the role, e.g. `rank 7 (typical)`."""
        return f"{self.label} ({self.role})" if self.role else self.label


BASE, NEW = SideName("base"), SideName("new")
"""Names of two runs."""


def names_of(base: Run, new: Run, roles: Sequence[str], noun: str) -> tuple[SideName, SideName]:
    """The names of two sides of one run; `base` and `new` if neither ranks nor steps tell them apart.

    Args:
        base: The base.
        new: The new side.
        roles: Roles of both.
        noun: What their steps are, `step` or `iteration`, if steps were chosen; else empty.
    """
    of_ranks = _named("rank", *([rank.rank for rank in side.ranks] for side in (base, new)))
    of_steps = _named(noun, base.steps, new.steps) if noun else ("", "")
    labels = [", ".join(filter(None, parts)) for parts in zip(of_ranks, of_steps, strict=True)]
    if labels[0] == labels[1] or not all(0 < len(label) <= LONGEST for label in labels):
        return BASE, NEW
    return SideName(labels[0], roles[0]), SideName(labels[1], roles[1])


def _named(noun: str, base: Sequence[int], new: Sequence[int]) -> tuple[str, str]:
    """The numbers of both sides in words; how many they are if the words are long; nothing if they are the same."""
    if list(base) == list(new):
        return "", ""
    named = [named_numbers(noun, numbers) for numbers in (base, new)]
    if max(map(len, named)) > LONGEST and len(base) != len(new):
        return f"{len(base)} {noun}s", f"{len(new)} {noun}s"
    return named[0], named[1]
