"""The trees of calls of two sides."""

from __future__ import annotations

import polars as pl

from stepscope.compare.call_trees import call_tree_differences
from stepscope.compare.registry import Sides

SCHEMA = ["rank", "depth", "name", "kind", "host_self_ns", "device_self_ns", "calls"]


def _tree(*rows: tuple[int, str, str, int, int], rank: int = 0) -> pl.DataFrame:
    return pl.DataFrame([(rank, *row, 4) for row in rows], schema=SCHEMA, orient="row")


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


def test_calls_below_a_wrapper_are_compared_with_the_same_calls_without_it() -> None:
    base = _tree((0, "thread 1", "thread", 0, 0), (1, "linear", "operator", 10, 0), (2, "addmm", "operator", 30, 0))
    new = _tree(
        (0, "thread 1", "thread", 0, 0),
        (1, "region", "operator", 5, 0),
        (2, "linear", "operator", 10, 0),
        (3, "addmm", "operator", 90, 0),
    )

    found = call_tree_differences(Sides(base, new), None)

    of_new = found.filter(pl.col("new_host_ns") > 0).select("name", "new_host_ns", "base_matched_host_ns")
    assert of_new.rows() == [("thread 1", 105, 40), ("region", 105, 40), ("linear", 100, 40), ("addmm", 90, 30)]
    of_base = found.filter(pl.col("base_host_ns") > 0).select("name", "base_host_ns", "new_matched_host_ns")
    assert of_base.rows() == [("thread 1", 40, 105), ("linear", 40, 100), ("addmm", 30, 90)]


def test_a_call_of_one_side_only_takes_nothing_on_the_other() -> None:
    base = _tree((0, "thread 1", "thread", 7, 0))
    new = _tree((0, "thread 1", "thread", 7, 0), (1, "save", "python", 50, 0))

    row = call_tree_differences(Sides(base, new), None).row(1, named=True)

    assert (row["name"], row["new_host_ns"], row["base_matched_host_ns"]) == ("save", 50, 0)
    assert row["new_matched_host_ns"] is None
