"""Circles among things that hold each other up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping


def circles(held_by: Mapping[int, Collection[int]]) -> list[list[int]]:
    """Sets of things each of which holds up all others of its set, directly or not; sorted.

    Args:
        held_by: What holds up each thing.
    """
    holds: dict[int, set[int]] = defaultdict(set)
    for one, others in held_by.items():
        for other in others:
            holds[other].add(one)
    seen: set[int] = set()
    ended = [one for start in sorted(held_by) for one in _reached(start, held_by, seen)]
    taken: set[int] = set()
    found = [sorted(_reached(start, holds, taken)) for start in reversed(ended)]
    return sorted(one for one in found if len(one) > 1)


def _reached(start: int, ways: Mapping[int, Collection[int]], seen: set[int]) -> list[int]:
    """What can be reached and was not seen before, in the order in which nothing further was found behind it."""
    if start in seen:
        return []
    seen.add(start)
    ended: list[int] = []
    path = [(start, iter(sorted(ways.get(start, ()))))]
    while path:
        one, others = path[-1]
        following = next((other for other in others if other not in seen), None)
        if following is None:
            ended.append(one)
            path.pop()
        else:
            seen.add(following)
            path.append((following, iter(sorted(ways.get(following, ())))))
    return ended
