"""Where a new turn of forward and backward begins within a step (micro-batches, several losses)."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.intervals import union

ENGINE = "autograd::engine::"
"""Prefix of PyTorch's autograd ranges, each of which covers one node of the graph."""

_BOUND = {"rank": pl.Int32, "turn_ns": pl.Int64}


def turn_starts(
    operators: pl.LazyFrame, marked: pl.DataFrame, resets: pl.LazyFrame | None, others: pl.LazyFrame
) -> pl.DataFrame:
    """Find where a new turn of forward and backward begins within steps; each step begins with its first turn.

    A turn begins with the first operator of forward after a range of backward, after an optimizer, and when a closure
    called by an optimizer sets gradients to zero: the time between that and the previous backward belongs to the
    optimizer. If neither autograd's ranges nor marks show backward, a step is one turn.

    Args:
        operators: Operators of known steps; `forward` marks those that may belong to a forward pass.
        marked: Ranges of the phases that annotations mark.
        resets: Ranges that set gradients to zero (`rank`, `start_ns`, `end_ns`).
        others: Disjoint ranges in which operators do not belong to a forward pass (`rank`, `start_ns`, `end_ns`).

    Returns:
        `rank`, `turn_ns`, in order of time.
    """
    end = pl.col("start_ns") + pl.col("duration_ns")
    engine = pl.col("name").str.starts_with(ENGINE)
    ranges = ["rank", "step", "start_ns", "end_ns"]
    closed = pl.concat(
        [
            operators.filter(engine).select("rank", "step", "start_ns", end_ns=end).collect(),
            marked.filter(pl.col("phase") == "backward").select(ranges),
        ]
    )
    if closed.is_empty():
        return pl.DataFrame(schema=_BOUND)
    updates = marked.filter(pl.col("phase") == "optimizer").join(closed, on=["rank", "step"], how="semi")
    backward = union(closed.lazy(), by=["rank"]).sort("rank", "start_ns").with_row_index("before").collect()
    busy = union(pl.concat([backward.lazy().select("rank", "start_ns", "end_ns"), others]), by=["rank"])
    forward = outside(_of_main_thread(operators.filter("forward")), busy).sort("start_ns")
    last = backward.select("rank", "before", "start_ns").sort("start_ns")
    after = forward.collect().join_asof(last, on="start_ns", by="rank", check_sortedness=False).drop_nulls("before")
    bounds = [
        after.group_by("rank", "before").agg(turn_ns=pl.col("start_ns").min()).select(list(_BOUND)),
        updates.select("rank", turn_ns="end_ns"),
    ]
    if resets is not None:
        bounds.append(_within(resets.collect(), updates).select("rank", turn_ns="end_ns"))
    return pl.concat(bounds).unique().sort("turn_ns", "rank")


def in_turns(rows: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """The rows with `turn_ns` of the turn in which they start; null before the first turn."""
    bounds = turns.sort("turn_ns").with_columns(start_ns="turn_ns")
    return rows.sort("start_ns", maintain_order=True).join_asof(
        bounds, on="start_ns", by="rank", check_sortedness=False
    )


def outside(rows: pl.LazyFrame, ranges: pl.LazyFrame) -> pl.LazyFrame:
    """The rows that start outside some disjoint ranges."""
    bounds = ranges.sort("rank", "start_ns").select("rank", "start_ns", over_ns="end_ns")
    last = rows.sort("rank", "start_ns").join_asof(bounds, on="start_ns", by="rank", check_sortedness=False)
    return last.filter(pl.col("over_ns").is_null() | (pl.col("start_ns") >= pl.col("over_ns"))).drop("over_ns")


def _within(rows: pl.DataFrame, ranges: pl.DataFrame) -> pl.DataFrame:
    """The rows that start inside some disjoint ranges."""
    bounds = ranges.sort("start_ns").select("rank", "start_ns", over_ns="end_ns")
    last = rows.sort("start_ns").join_asof(bounds, on="start_ns", by="rank", check_sortedness=False)
    return last.filter(pl.col("start_ns") < pl.col("over_ns"))


def _of_main_thread(operators: pl.LazyFrame) -> pl.LazyFrame:
    """The operators on the thread with the most; those on loaders' threads do not belong to a forward pass."""
    counts = operators.group_by("rank", "thread").len().sort("rank", "len", "thread", descending=[False, True, False])
    main = counts.group_by("rank", maintain_order=True).agg(pl.col("thread").first())
    return operators.join(main, on=["rank", "thread"], how="semi", nulls_equal=True)
