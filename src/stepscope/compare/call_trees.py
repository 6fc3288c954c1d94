"""Which calls, in which calls, take more or less time than on the base: the tree of a differential flame graph."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.methods.call_paths import CallTree, Frame
from stepscope.compare.matched_trees import SIDES, matched_times
from stepscope.compare.registry import Sides, comparison
from stepscope.tables.base import Column

_THREAD = re.compile(r"^thread .*$")
_NAMED = re.compile(r"^(.*) \(thread .*\)$")

FIGURES = {
    "host_ns": "Time of {} on the host in a step, mean of its steps and ranks.",
    "host_self_ns": "Part of it outside of the calls in them.",
    "device_ns": "Device work that {} launches in a step, mean of its steps and ranks.",
    "device_self_ns": "Device work itself of {}.",
}

MATCHED = {
    "host_ns": "Time of {} on the host in the calls that {} makes here, wherever it makes them itself.",
    "device_ns": "Device work that {} launches in the calls that {} makes here, wherever it makes them itself.",
}

COLUMNS = columns(
    Column("node", "int64", "Number of the row, from 0: each is followed by those in it.", nullable=False),
    Column("parent", "int64", "Row of the call around it; null at the top."),
    Column("depth", "int32", "Calls around it.", nullable=False),
    Column("name", "string", "Name of the call.", title="call"),
    Column("kind", "string", "What it is, as in `call_tree`.", importance=40),
    *(
        Column(f"{side}_{name}", "int64", meaning.replace("{}", f"the {side} side" if side == "new" else "the base"))
        for side in SIDES
        for name, meaning in FIGURES.items()
    ),
    *(
        Column(
            f"{side}_matched_{name}",
            "int64",
            meaning.format(*("the base", "the new side") if side == "base" else ("the new side", "the base")),
        )
        for side in SIDES
        for name, meaning in MATCHED.items()
    ),
    keep="name new_host_ns base_host_ns",
)


@comparison(COLUMNS)
def call_tree_differences(call_tree: Sides, side_steps: Sides | None) -> pl.DataFrame:
    """Compare the trees of calls of both sides by the names of the calls around each call: one row per node of either
    tree, each followed by those in it, the longest first.

    Threads without names have other numbers in each run: they are compared in the order of their time. Calls that have
    others around them on one side are matched (`matching.py`).

    Args:
        call_tree: The trees of all ranks of each side.
        side_steps: Steps of both sides. Without steps, times are of whole recordings.
    """
    sums, trees = CallTree(), (CallTree(), CallTree())
    nodes: tuple[dict[int, float], dict[int, float]] = ({}, {})
    windows = [
        _windows(call_tree[side], None if side_steps is None else side_steps[side]) for side in range(len(SIDES))
    ]
    for side, rows in enumerate(call_tree):
        around = [0]
        for depth, frame, calls, host_ns, device_ns in _calls(rows):
            del around[depth + 1 :]
            for tree in (sums, *trees):  # all of them number their nodes alike
                node = tree.child(around[depth], frame)
                tree.add(node, 0, *((host_ns, device_ns) if tree is sums or tree is trees[side] else (0, 0)))
            around.append(node)
            nodes[side][node] = nodes[side].get(node, 0.0) + calls / windows[side]
    order = sums.order()
    parts = [sums.places(order)]
    means = [
        tree.times(order).drop("calls").select((pl.all() / of_side).round().cast(pl.Int64))
        for tree, of_side in zip(trees, windows, strict=True)
    ]
    for of_side, each in zip(SIDES, means, strict=True):
        parts.append(each.rename({name: f"{of_side}_{name}" for name in each.columns}))
    parts.append(matched_times(sums, order, nodes, means))
    return pl.concat(parts, how="horizontal").select(column.name for column in COLUMNS)


def _calls(rows: pl.DataFrame) -> Iterator[tuple[int, Frame, int, int, int]]:
    """Each call as a tree has it: how many are around it, what it is, the number of calls and its own times."""
    columns = ("rank", "depth", "name", "kind", "calls", "host_self_ns", "device_self_ns")
    before, threads = None, 0
    for rank, depth, name, kind, calls, host_ns, device_ns in rows.select(columns).iter_rows():
        threads = threads if rank == before else 0
        before, label = rank, name
        if depth == 0 and kind == "thread":
            if _THREAD.match(name):
                threads += 1
                label = f"thread {threads}"
            elif named := _NAMED.match(name):
                label = named[1]
        yield depth, (label, kind), calls, host_ns, device_ns


def _windows(rows: pl.DataFrame, steps: pl.DataFrame | None) -> int:
    """The number of steps of all ranks in a side's trees; of ranks if no steps are known."""
    if steps is None:
        return max(rows["rank"].n_unique(), 1)
    return max(steps.filter(pl.col("rank").is_in(rows["rank"].unique().implode())).height, 1)
