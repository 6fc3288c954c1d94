"""Replay of a graph of pieces of work in Python, with the results of the compiled code (`sources/native/replay.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

_LEAST, _MOST = -(2**63), 2**63 - 1


class PlainReplay:
    """A graph in order, ready to be replayed.

    All columns are Int64 without nulls, with one row for each node; those of edges are row numbers of nodes.
    """

    def __init__(self, start_ns: pl.Series, end_ns: pl.Series, node: pl.Series, before: pl.Series) -> None:
        edges = list(zip(node.to_list(), before.to_list(), strict=True))
        self._start = start_ns.to_list()
        self._order, self._left_out = _ordered(self._start, end_ns.to_list(), edges)
        self._before: list[list[int]] = [[] for _ in self._start]
        for row, (later, earlier) in enumerate(edges):
            if row not in self._left_out:
                self._before[later].append(earlier)

    def left_out(self) -> pl.Series:
        """Rows of edges that are left out, in order."""
        return _column(sorted(self._left_out))

    def lags(self, start_ns: pl.Series, end_ns: pl.Series) -> tuple[pl.Series, pl.Series]:
        """Times from the last end before each node to its start, and from its start to that end, neither below 0."""
        ends = end_ns.to_list()
        lengths = [
            start - max((ends[one] for one in before), default=start)
            for start, before in zip(start_ns.to_list(), self._before, strict=True)
        ]
        if any(abs(length) > _MOST for length in lengths):
            raise OverflowError
        return _column([max(length, 0) for length in lengths]), _column([max(-length, 0) for length in lengths])

    def ends(self, duration_ns: pl.Series, lag_ns: pl.Series) -> pl.Series:
        """When each node ends."""
        return _column(self._ends(duration_ns, lag_ns))

    def last_ends(self, duration_ns: pl.Series, lag_ns: pl.Series, group: pl.Series, groups: int) -> pl.Series:
        """When the last node of each group ends; groups are numbered from 0 on, -1 is none."""
        return _column(_last_ends(self._ends(duration_ns, lag_ns), group.to_list(), groups))

    def slack(
        self, duration_ns: pl.Series, lag_ns: pl.Series, group: pl.Series, groups: int
    ) -> tuple[pl.Series, pl.Series, pl.Series]:
        """When each node ends; how much later it may; the node that sets its start, or null."""
        ends, numbers = self._ends(duration_ns, lag_ns), group.to_list()
        last, every = _last_ends(ends, numbers, groups), max(ends, default=0)
        latest = [every if number < 0 else last[number] for number in numbers]
        durations, lags = duration_ns.to_list(), lag_ns.to_list()
        for node in reversed(self._order):
            for one in self._before[node]:
                latest[one] = min(latest[one], latest[node] - durations[node] - lags[node])
        slack = [most - end for most, end in zip(latest, ends, strict=True)]
        if any(length > _MOST for length in slack):
            raise OverflowError
        return _column(ends), _column(slack), _column([self._deciding(node, ends) for node in range(len(ends))])

    def paths(
        self, duration_ns: pl.Series, lag_ns: pl.Series, node: pl.Series, since_ns: pl.Series
    ) -> tuple[pl.Series, pl.Series]:
        """The nodes that decide when each of some nodes ends, from it back, as far as they end after `since_ns`: the
        number of the path, and the node."""
        ends = self._ends(duration_ns, lag_ns)
        paths: list[int] = []
        found: list[int] = []
        for path, (last, since) in enumerate(zip(node.to_list(), since_ns.to_list(), strict=True)):
            at: int | None = last
            while at is not None and (at == last or ends[at] > since):
                paths.append(path)
                found.append(at)
                at = self._deciding(at, ends)
        return _column(paths), _column(found)

    def _ends(self, duration_ns: pl.Series, lag_ns: pl.Series) -> list[int]:
        """When each node ends.

        Raises:
            OverflowError: If a time does not fit into 64 bits.
        """
        ends = [0] * len(self._start)
        durations, lags = duration_ns.to_list(), lag_ns.to_list()
        for node in self._order:
            last = max((ends[one] for one in self._before[node]), default=self._start[node])
            ends[node] = last + lags[node] + durations[node]
        if any(not _LEAST <= end <= _MOST for end in ends):
            raise OverflowError
        return ends

    def _deciding(self, node: int, ends: Sequence[int]) -> int | None:
        """The predecessor that sets the start of a node: the one that ends last, of several the lowest."""
        return max(self._before[node], key=lambda one: (ends[one], -one), default=None)


def _column(values: Sequence[int | None]) -> pl.Series:
    return pl.Series(values, dtype=pl.Int64)


def _last_ends(ends: Sequence[int], groups: Sequence[int], count: int) -> list[int]:
    last = [_LEAST] * count
    for end, group in zip(ends, groups, strict=True):
        if group >= 0:
            last[group] = max(last[group], end)
    return last


def _ordered(
    starts: Sequence[int], ends: Sequence[int], edges: Sequence[tuple[int, int]]
) -> tuple[list[int], set[int]]:
    """The nodes, each after those that it waits for, and the edges of cycles that are left out for that.

    Those edges go against the traced starts; on cycles of equal starts, the ends; on those of equal ends, the rows.
    """
    keys: tuple[Sequence[int], ...] = (starts, ends, [2 * node for node in range(len(starts))])
    left_out: set[int] = set()
    order = _placed(len(starts), edges, left_out)
    for turn, key in enumerate(keys):
        if len(order) == len(starts):
            break
        component = _components(len(starts), edges, left_out, set(order))
        for row, (later, earlier) in enumerate(edges):
            on_cycle = later in component and component[later] == component.get(earlier)
            if on_cycle and (key[earlier] > key[later] or (turn == 2 and earlier == later)):
                left_out.add(row)
        order = _placed(len(starts), edges, left_out)
    return order, left_out


def _followers(nodes: int, edges: Sequence[tuple[int, int]], left_out: set[int]) -> list[list[int]]:
    after: list[list[int]] = [[] for _ in range(nodes)]
    for row, (later, earlier) in enumerate(edges):
        if row not in left_out:
            after[earlier].append(later)
    return after


def _placed(nodes: int, edges: Sequence[tuple[int, int]], left_out: set[int]) -> list[int]:
    """Nodes behind those that they wait for, without those that wait for a cycle."""
    after, waiting = _followers(nodes, edges, left_out), [0] * nodes
    for followers in after:
        for node in followers:
            waiting[node] += 1
    order = [node for node in range(nodes) if not waiting[node]]
    for node in order:  # which grows meanwhile
        for follower in after[node]:
            waiting[follower] -= 1
            if not waiting[follower]:
                order.append(follower)
    return order


def _components(nodes: int, edges: Sequence[tuple[int, int]], left_out: set[int], placed: set[int]) -> dict[int, int]:
    """A number for each node that is not placed: the same for nodes that lie on one cycle (Tarjan's algorithm)."""
    after = _followers(nodes, edges, left_out)
    component: dict[int, int] = {}
    reached: dict[int, int] = {}
    low: dict[int, int] = {}
    opened: list[int] = []
    for root in range(nodes):
        path: list[tuple[int, Iterator[int]]] = []
        if root not in placed and root not in reached:
            path.append((root, iter(after[root])))
        while path:
            node, rest = path[-1]
            if node not in reached:
                reached[node] = low[node] = len(reached)
                opened.append(node)
            follower = next((one for one in rest if one not in component), None)
            if follower is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                while low[node] == reached[node] and node not in component:
                    component[opened.pop()] = node
            elif follower not in reached:
                path.append((follower, iter(after[follower])))
            else:
                low[node] = min(low[node], reached[follower])
    return component
