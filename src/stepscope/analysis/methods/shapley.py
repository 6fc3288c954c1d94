"""Sharing out what mending several causes together saves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from random import Random

Value = Callable[[frozenset[int]], Sequence[float]]

EXACT = 4
"""Causes of which all orders are tried; of more, at least `ORDERS`: then shares are off by a tenth of the largest."""

ORDERS = 24


def shares(count: int, value: Value) -> list[list[float]]:
    """Share out the value of all causes: each gets what it adds on average over the orders in which they can be mended
    (Shapley, 1953). So the shares sum to the value of all together.

    Args:
        count: How many causes.
        value: What mending a set of causes saves, e.g. in each step; it is asked once for each set.

    Returns:
        For each cause a list as long as those of `value`.

    Examples:
        >>> worth = {frozenset(): [0.0], frozenset({0}): [3.0], frozenset({1}): [1.0], frozenset({0, 1}): [6.0]}
        >>> shares(2, lambda mended: worth[mended])
        [[4.0], [2.0]]
    """
    known: dict[frozenset[int], Sequence[float]] = {}

    def asked(mended: frozenset[int]) -> Sequence[float]:
        if mended not in known:
            known[mended] = value(mended)
        return known[mended]

    orders = _orders(count)
    sums = [[0.0] * len(asked(frozenset())) for _ in range(count)]
    for order in orders:
        mended: frozenset[int] = frozenset()
        for cause in order:
            more = mended | {cause}
            sums[cause] = [
                total + after - before
                for total, before, after in zip(sums[cause], asked(mended), asked(more), strict=True)
            ]
            mended = more
    return [[total / len(orders) for total in one] for one in sums]


def _orders(count: int) -> list[list[int]]:
    """All orders, or random ones, the same at each run: each in all its rotations, so that each cause is as often at
    each place, and backwards. That is twice as exact as random ones alone, and asks for fewer sets."""
    if count <= EXACT:
        return [list(order) for order in permutations(range(count))]
    random, found = Random(count), list[list[int]]()
    turns = min(count, ORDERS // 2)
    while len(found) < ORDERS:
        order = list(range(count))
        random.shuffle(order)
        for turn in range(turns):
            first = turn * count // turns
            turned = order[first:] + order[:first]
            found += [turned, turned[::-1]]
    return found
