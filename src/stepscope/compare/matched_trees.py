"""What a call of one tree takes in the other one, also where it has other calls around it there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from stepscope.analysis.methods.call_paths import CallTree
from stepscope.compare.matching import Key, Place, matches

SIDES = ("base", "new")
TIMES = ("host_ns", "device_ns")

MOST_NAMES = 3_000_000
"""Names in the paths of all nodes up to which calls with others around them are matched, as these are in memory."""

Calls = Mapping[int, float]
"""Nodes of a side with their calls in a step."""


def matched_times(
    tree: CallTree, order: Sequence[tuple[int, int]], nodes: tuple[Calls, Calls], means: Sequence[pl.DataFrame]
) -> pl.DataFrame:
    """For each node what the other side takes for the same calls: `<side>_matched_<time>` is the time of a side for
    calls of the other one, null where that one makes none.

    A call that nothing matches, such as a wrapper, takes what the calls in it take.

    Args:
        tree: The nodes of both sides.
        order: The nodes as rows, each followed by those in it.
        nodes: The nodes of each side.
        means: Whole times of each side, by row.
    """
    rows = {node: row for row, (node, _) in enumerate(order)}
    names = sum(depth + 1 for node, depth in order for own in nodes if node in own)
    groups = _groups(tree, nodes) if names <= MOST_NAMES else []
    found: dict[str, list[int | None]] = {}
    for side, own in enumerate(nodes):
        other = 1 - side
        for time in TIMES:
            times = {node: means[other][time][row] for node, row in rows.items() if node in nodes[other]}
            drawn = {node: means[side][time][row] for node, row in rows.items() if node in own}
            known = _of_groups(groups, side, drawn, times)
            column = _summed_up(tree, own, {**times, **known})
            found[f"{SIDES[other]}_matched_{time}"] = [column.get(node) for node, _ in order]
    return pl.DataFrame({name: pl.Series(values, dtype=pl.Int64) for name, values in found.items()})


def _groups(tree: CallTree, nodes: tuple[Calls, Calls]) -> list[tuple[list[int], list[int]]]:
    """Nodes of base and new side that are the same, although others are around them."""
    sides: list[dict[Key, Place]] = []
    numbers: list[dict[Key, int]] = []
    for own in nodes:
        keys = {node: _key(tree, node) for node in own}
        sides.append({key: Place(own[node]) for node, key in keys.items()})
        numbers.append({key: node for node, key in keys.items()})
    return [
        ([numbers[0][key] for key in match.base], [numbers[1][key] for key in match.new])
        for match in matches(*sides)
        if match.how is not None and match.base != match.new
    ]


def _key(tree: CallTree, node: int) -> Key:
    """The names of the calls around a node and its own, and its kind."""
    names, kind = list[str](), tree.frames[node][1]
    while node > 0:
        names.append(tree.frames[node][0])
        node = tree.parents[node]
    return tuple(reversed(names)), kind


def _of_groups(
    groups: Iterable[tuple[list[int], list[int]]], side: int, drawn: Mapping[int, int], other: Mapping[int, int]
) -> dict[int, int]:
    """What the other side takes for each node of a group, in proportion to the times of the nodes."""
    found: dict[int, int] = {}
    for group in groups:
        own, others = group[side], group[1 - side]
        whole, total = sum(drawn[node] for node in own), sum(other[node] for node in others)
        for node in own:
            found[node] = round(total * (drawn[node] / whole if whole else 1 / len(own)))
    return found


def _summed_up(tree: CallTree, own: Calls, known: Mapping[int, int]) -> dict[int, int]:
    """The time of each node of a side: what is known of it, else that of the nodes in it."""
    sums: dict[int, int] = {}
    for node in sorted(own, reverse=True):  # a node comes after the one that it is in
        sums[node] = known.get(node, sums.get(node, 0))
        parent = tree.parents[node]
        if parent > 0 and parent not in known:
            sums[parent] = sums.get(parent, 0) + sums[node]
    return sums
