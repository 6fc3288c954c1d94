"""Phases of ranks whose marks show launches, moved to where their operators ran.

In MindSpore's PyNative mode a call returns once its operators are queued. The mark of a backward pass therefore ends
while most of its operators are still waiting to run, and the mark of the optimizer begins before they do.
"""

from __future__ import annotations

import polars as pl

from stepscope.tables.operators import OPTIMIZER_SCOPE

UPDATE = (
    OPTIMIZER_SCOPE + r"|(?i)(^|/)"
    r"((assign|\w*(apply|adam|momentum|adagrad|ftrl|lamb)|lars|rprop)\w*|sgd)(-op\d+)?$"
)
"""Operators that update parameters or the step counter. In PyNative mode, operators of optimizers have no scope."""

_STEP = ["rank", "step"]


def marks_launches(ranks: pl.LazyFrame | None, kernels: pl.LazyFrame | None) -> list[int]:
    """The ranks whose marks of phases show launches, and whose operators show when the work ran."""
    if ranks is None:
        return []
    eager = (pl.col("framework") == "mindspore") & (pl.col("mode") == "pynative")
    found = ranks.filter(eager).select("rank").unique()
    if kernels is not None:
        found = found.join(kernels.select("rank").unique(), on="rank", how="anti")
    return list(found.collect()["rank"].sort())


def as_executed(marked: pl.DataFrame, operators: pl.LazyFrame | None, ranks: list[int]) -> pl.DataFrame:
    """Phases in which backward lasts until its last operator, and the optimizer begins after it.

    The last operator of backward is the one before the first parameter update that starts after the end of backward's
    mark. Steps without such an update keep their marks.

    Args:
        marked: `rank`, `step`, `phase`, `start_ns`, `end_ns`.
        operators: Host operators.
        ranks: From `marks_launches`.
    """
    backward = marked.filter((pl.col("phase") == "backward") & pl.col("rank").is_in(ranks)).drop_nulls("step")
    if operators is None or backward.is_empty():
        return marked
    launched = backward.group_by(_STEP).agg(launched_ns=pl.col("end_ns").max())
    rows = operators.select(*_STEP, "name", "start_ns", end_ns=pl.col("start_ns") + pl.col("duration_ns"))
    known = rows.join(launched.lazy(), on=_STEP).collect()
    updates = known.filter(pl.col("name").str.contains(UPDATE) & (pl.col("start_ns") >= pl.col("launched_ns")))
    before = known.join(updates.group_by(_STEP).agg(update_ns=pl.col("start_ns").min()), on=_STEP)
    ends = (
        before.filter(pl.col("start_ns") < pl.col("update_ns")).group_by(_STEP).agg(executed_ns=pl.col("end_ns").max())
    )
    both = marked.join(launched.join(ends, on=_STEP), on=_STEP, how="left", maintain_order="left")
    executed = pl.max_horizontal("launched_ns", "executed_ns")
    is_last = (pl.col("phase") == "backward") & (pl.col("end_ns") == pl.col("launched_ns"))
    follows = (pl.col("phase") == "optimizer") & (pl.col("start_ns") >= pl.col("launched_ns"))
    return (
        both.with_columns(executed_ns=executed)
        .with_columns(
            start_ns=pl.when(follows).then(pl.max_horizontal("start_ns", "executed_ns")).otherwise("start_ns"),
            end_ns=pl.when(is_last).then("executed_ns").otherwise("end_ns"),
        )
        .filter(pl.col("end_ns") > pl.col("start_ns"))
        .select(marked.columns)
    )
