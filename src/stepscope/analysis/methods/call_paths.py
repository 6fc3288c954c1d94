"""A tree of calls: which calls run in which, summed up over all calls with the same calls around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

Frame = tuple[str, str]
"""Name and kind of a call."""


@dataclass
class CallTree:
    """Calls by what runs around them; node 0 stands for all. Time is kept at the innermost call that it is of."""

    parents: list[int] = field(default_factory=lambda: [-1])
    frames: list[Frame] = field(default_factory=lambda: [("", "")])
    calls: list[int] = field(default_factory=lambda: [0])
    host_ns: list[int] = field(default_factory=lambda: [0])
    device_ns: list[int] = field(default_factory=lambda: [0])
    _below: dict[tuple[int, Frame], int] = field(default_factory=dict)

    def child(self, parent: int, frame: Frame) -> int:
        """The node of calls of this name and kind in another node."""
        found = self._below.get((parent, frame))
        if found is None:
            found = self._below[parent, frame] = len(self.frames)
            self.parents.append(parent)
            self.frames.append(frame)
            for column in (self.calls, self.host_ns, self.device_ns):
                column.append(0)
        return found

    def path(self, frames: Iterable[Frame]) -> int:
        """The node at the end of a path from the top."""
        node = 0
        for frame in frames:
            node = self.child(node, frame)
        return node

    def add(self, node: int, calls: int, host_ns: int = 0, device_ns: int = 0) -> None:
        """Add calls, and time that is of the node itself."""
        self.calls[node] += calls
        self.host_ns[node] += host_ns
        self.device_ns[node] += device_ns

    def rows(self) -> pl.DataFrame:
        """One row per node except that of all, each followed by those in it, the longest on the host first: `node`,
        `parent` (null at the top), `depth`, `name`, `kind`, `calls`, and whole and own times."""
        order = self.order()
        return pl.concat([self.places(order), self.times(order)], how="horizontal")

    def order(self) -> list[tuple[int, int]]:
        """Nodes with their depth, each followed by those in it, the longest on the host first."""
        host, device = self._whole()
        inside: dict[int, list[int]] = {}
        for node in self._nodes[1:]:
            inside.setdefault(self.parents[node], []).append(node)
        return [*_depth_first(inside, [(host[node], device[node], self.frames[node]) for node in self._nodes])]

    def places(self, order: Sequence[tuple[int, int]]) -> pl.DataFrame:
        """What and where each node of an order is: `node`, `parent`, `depth`, `name`, `kind`."""
        rows = {node: row for row, (node, _) in enumerate(order)}
        schema = {"node": pl.Int64, "parent": pl.Int64, "depth": pl.Int32, "name": pl.String, "kind": pl.String}
        found = [
            (row, rows.get(self.parents[node]), depth, *self.frames[node]) for row, (node, depth) in enumerate(order)
        ]
        return pl.DataFrame(found, schema=schema, orient="row")

    def times(self, order: Sequence[tuple[int, int]]) -> pl.DataFrame:
        """Figures of each node of an order: `calls`, and whole and own times."""
        columns = {
            "calls": self.calls,
            **dict(zip(("host_ns", "device_ns"), self._whole(), strict=True)),
            **{"host_self_ns": self.host_ns, "device_self_ns": self.device_ns},
        }
        return pl.DataFrame(
            {name: pl.Series([values[node] for node, _ in order], dtype=pl.Int64) for name, values in columns.items()}
        )

    def _whole(self) -> tuple[list[int], list[int]]:
        """Times of each node with all nodes in it, on the host and on devices."""
        host, device = [*self.host_ns], [*self.device_ns]
        for node in range(len(self.parents) - 1, 0, -1):  # a node comes after the one that it is in
            host[self.parents[node]] += host[node]
            device[self.parents[node]] += device[node]
        return host, device

    @property
    def _nodes(self) -> range:
        return range(len(self.parents))


def _depth_first(
    inside: Mapping[int, Sequence[int]], keys: Sequence[tuple[int, int, Frame]]
) -> Iterator[tuple[int, int]]:
    """Nodes with their depth, those in a node after it, the longest first."""

    def sorted_below(node: int) -> list[int]:
        return sorted(inside.get(node, ()), key=lambda one: (-keys[one][0], -keys[one][1], keys[one][2]), reverse=True)

    left = [(node, 0) for node in sorted_below(0)]
    while left:
        node, depth = left.pop()
        yield node, depth
        left += [(below, depth + 1) for below in sorted_below(node)]


ANNOTATION = "annotation"
"""Kind of ranges that a script marks. They begin within the function that marks them, and outlive it."""


@dataclass
class _Open:
    """A call that may not be over yet."""

    end_ns: int
    node: int
    module: str


def add_calls(
    tree: CallTree,
    batches: Iterable[pl.DataFrame],
    wanted: frozenset[int],
    moved: Mapping[int, Sequence[Frame]],
    begun: Mapping[int, Sequence[Frame]],
) -> dict[int, int]:
    """Add the calls of a rank to a tree.

    Args:
        tree: The tree.
        batches: Calls in order of time, in any number of frames: `slice`, `thread` (a label), `start_ns`,
            `duration_ns`, `name`, `kind`, `is_module`.
        wanted: Slices of which the node is asked for.
        moved: Slices that belong below another path than that of what runs around them; their time is not theirs.
        begun: What called the outermost slices of a thread, where that was recorded with them.

    Returns:
        The node of each slice that is wanted.
    """
    nodes: dict[int, int] = {}
    threads: dict[str, list[_Open]] = {}
    columns = ("slice", "thread", "start_ns", "duration_ns", "name", "kind", "is_module")
    for batch in batches:
        for number, thread, start, duration, name, kind, is_module in batch.select(columns).iter_rows():
            opened = threads.setdefault(thread, [])
            end = start + duration
            while opened and (opened[-1].end_ns <= start and (duration or opened[-1].end_ns < start)):
                opened.pop()
            if kind == ANNOTATION:
                _end_early(tree, opened, start, end)
            around = opened[-1] if opened else None
            if around is not None:  # what goes on beyond the call around it is not taken off that one twice
                tree.host_ns[around.node] -= min(end, around.end_ns) - start
            module = "" if around is None else around.module
            frame = (name, kind)
            if is_module:
                frame = (name.removeprefix(f"{module}/"), kind)
                module = name if frame[0] != name or not module else f"{module}/{name}"
            if number in moved:
                base = tree.path(((thread, "thread"), *moved[number]))
            elif around is not None:
                base = around.node
            else:
                base = tree.path(((thread, "thread"), *begun.get(number, ())))
            node = tree.child(base, frame)
            tree.add(node, 1, host_ns=duration)
            opened.append(_Open(end, node, module))
            if number in wanted:
                nodes[number] = node
    return nodes


def _end_early(tree: CallTree, opened: list[_Open], start_ns: int, end_ns: int) -> None:
    """End the calls that are over before a range which begins in them is; the rest of their time is the range's."""
    cut = start_ns
    while opened and opened[-1].end_ns < end_ns:
        over = opened.pop()
        tree.host_ns[over.node] -= max(over.end_ns - cut, 0)
        cut = max(cut, over.end_ns)
    if opened:
        tree.host_ns[opened[-1].node] += cut - start_ns
