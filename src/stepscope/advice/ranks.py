"""Naming the ranks that share a finding, so that the same thing on many ranks is said once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepscope.selection import describe_numbers


def named(ranks: Sequence[int], verb: str = "", verbs: str = "") -> str:
    """The ranks as the subject of a sentence, with its verb.

    Examples:
        >>> named([3], "waits", "wait"), named([0, 1, 2, 5], "waits", "wait")
        ('Rank 3 waits', 'Ranks 0-2,5 wait')
    """
    numbers = sorted(set(ranks))
    who = f"Rank {numbers[0]}" if len(numbers) == 1 else f"Ranks {describe_numbers(numbers)}"
    return f"{who} {verb if len(numbers) == 1 else verbs}".rstrip()


def place(ranks: Sequence[int]) -> dict[str, Any]:
    """The same for programs: `rank` of one, `ranks` of several."""
    numbers = sorted(set(ranks))
    return {"rank": numbers[0]} if len(numbers) == 1 else {"ranks": numbers}


def on_rank(rank: int, ranks: Sequence[int]) -> str:
    """Where the worst of several ranks is told, words for it; nothing where there is but one.

    Examples:
        >>> on_rank(5, [0, 5]), on_rank(5, [5, 5])
        (' on rank 5', '')
    """
    return f" on rank {rank}" if len(set(ranks)) > 1 else ""
