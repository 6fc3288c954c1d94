"""The trees of calls of two sides."""

from __future__ import annotations

import polars as pl

from stepscope.compare.call_trees import call_tree_differences
from stepscope.compare.registry import Sides

SCHEMA = ["rank", "depth", "name", "kind", "host_self_ns", "device_self_ns"]


def _tree(*rows: tuple[int, str, str, int, int], rank: int = 0) -> pl.DataFrame:
    return pl.DataFrame([(rank, *row) for row in rows], schema=SCHEMA, orient="row")


def test_calls_are_compared_by_the_calls_around_them_as_means_of_a_step() -> None:
    base = _tree((0, "thread 71", "thread", 0, 0), (1, "mm", "operator", 40, 0), (2, "gemm", "kernel", 0, 80))
    new = _tree((0, "thread 9", "thread", 0, 0), (1, "mm", "operator", 90, 0), (2, "wmma", "kernel", 0, 30))
    steps = Sides(*(pl.DataFrame({"rank": [0] * count, "step": range(count)}) for count in (2, 3)))

    found = call_tree_differences(Sides(base, new), steps)

    columns = ("depth", "name", "base_host_ns", "new_host_ns", "base_device_ns", "new_device_ns")
    assert found.select(columns).rows() == [
        (0, "thread 1", 20, 30, 40, 10),
        (1, "mm", 20, 30, 40, 10),
        (2, "gemm", 0, 0, 40, 0),
        (2, "wmma", 0, 0, 0, 10),
    ]


def test_named_threads_are_compared_by_name_and_ranks_are_means() -> None:
    base = pl.concat([_tree((0, f"loader (thread {9 + rank})", "thread", 10, 0), rank=rank) for rank in range(2)])
    new = _tree((0, "thread 3", "thread", 7, 0), (0, "loader (thread 5)", "thread", 4, 0))

    found = call_tree_differences(Sides(base, new), None)

    assert found.select("name", "base_host_ns", "new_host_ns").rows() == [("loader", 10, 4), ("thread 1", 0, 7)]
