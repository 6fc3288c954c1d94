"""When the tensors of a compiled graph are alive."""

from __future__ import annotations

import polars as pl

WHOLE, FROM_START, TO_END = "LifeLongGraphAll", "LifeLongGraphStart", "LifeLongGraphEnd"
"""Lifetimes that MindSpore names; others last from `life_start` to `life_end`."""


def lives(tensors: pl.LazyFrame) -> pl.LazyFrame:
    """Tensors with `first` and `last`, the nodes of their lifetime; null means the beginning or end of the graph."""
    lifetime = pl.col("lifetime")
    return tensors.with_columns(
        first=pl.when(~lifetime.is_in([WHOLE, FROM_START]).fill_null(False)).then("life_start"),
        last=pl.when(~lifetime.is_in([WHOLE, TO_END]).fill_null(False)).then("life_end"),
    )


def alive_at(node: pl.Expr) -> pl.Expr:
    """Whether a tensor with `first` and `last` is alive at a node."""
    return (pl.col("first").fill_null(node) <= node) & (pl.col("last").fill_null(node) >= node)


def node_totals(nodes: pl.DataFrame, tensors: pl.LazyFrame | None) -> pl.DataFrame:
    """The memory of the tensors alive at each node.

    Args:
        nodes: `rank`, `graph`, `node` in the order of execution.
        tensors: Rows of `graph_tensors`; None if unknown.

    Returns:
        `rank`, `graph`, `node`, `live_bytes` (null without tensors).
    """
    key = ["rank", "graph"]
    if tensors is None:
        return nodes.select(*key, "node", live_bytes=pl.lit(None, pl.Int64))
    living = lives(tensors).select(*key, "first", "last", "size_bytes").collect()
    # a tensor adds its size at its first node and removes it after its last
    begins = living.select(*key, node=pl.col("first").fill_null(0), change="size_bytes")
    ends = living.filter(pl.col("last").is_not_null()).select(
        *key, node=pl.col("last") + 1, change=-pl.col("size_bytes")
    )
    changes = pl.concat([begins, ends]).group_by(*key, "node").agg(pl.col("change").sum()).sort("node")
    running = changes.with_columns(live_bytes=pl.col("change").cum_sum().over(key)).drop("change")
    ordered = nodes.select(*key, "node").sort("node")
    return ordered.join_asof(running, on="node", by=key, check_sortedness=False).with_columns(
        pl.col("live_bytes").fill_null(0)
    )
