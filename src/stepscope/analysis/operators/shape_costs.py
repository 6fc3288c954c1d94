"""Which operators' shapes change most, and what that costs."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.operators.dynamic_shapes import OPERATOR
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

_SHAPE = [*OPERATOR, "input_shapes"]

COLUMNS = columns(
    "rank unit type name full_name shapes",
    Column("once", "int64", "Those shapes that occur once."),
    "steps count total_ns",
    Column("fastest_ns", "int64", "Mean of the fastest shape."),
    Column("slowest_ns", "int64", "Mean of the slowest shape."),
    Column("spread_ns", "int64", "Time beyond all calls at the fastest shape; null if a step has several shapes."),
    Column("first_call_ns", "int64", "Time of the first calls with a shape beyond the median of its later ones."),
    keep="name shapes total_ns spread_ns count type slowest_ns fastest_ns",
)


@analysis("rank", COLUMNS, together=True)
def shape_costs(shape_executions: pl.DataFrame) -> pl.DataFrame:
    """Sum up operators with changing shapes over all steps.

    * `spread_ns`: the time above what all calls would take with the shape that is fastest on average. It is what
      bucketing or padding to that shape could save at most, and only if the work allowed it. Null where an operator
      has several shapes within a step: then it stands for several places in the model.
    * `first_call_ns`: the time by which the first calls with a shape are longer than the median of its later calls. It
      is what new shapes cost on top: compiling, choosing algorithms, growing memory. Shapes that come once are not
      counted, as nothing tells what they take otherwise.

    Returns:
        One row an operator, those with the most shapes first.

    Raises:
        Unavailable: If executions were recorded without shapes.
    """
    rows = shape_executions.filter(pl.col("input_shapes").is_not_null())
    if rows.is_empty():
        raise Unavailable("executions were recorded step by step, but without their shapes")
    by_shape = rows.group_by(_SHAPE, maintain_order=True).agg(
        count=pl.len().cast(pl.Int64),
        mean=pl.col("duration_ns").mean(),
        first=pl.col("duration_ns").first(),
        later=pl.col("duration_ns").slice(1).median(),
    )
    excess = (pl.col("first") - pl.col("later")).clip(lower_bound=0).fill_null(0.0)
    in_step = rows.group_by(*OPERATOR, "step").agg(alike=pl.col("input_shapes").n_unique() == 1)
    steps = in_step.group_by(OPERATOR).agg(steps=pl.len().cast(pl.Int64), one_place=pl.col("alike").all())
    count, mean = pl.col("count"), pl.col("mean")
    return (
        by_shape.group_by(OPERATOR)
        .agg(
            shapes=pl.len().cast(pl.Int64),
            once=(count == 1).sum().cast(pl.Int64),
            total_ns=rounded((mean * count).sum()),
            fastest_ns=rounded(mean.min()),
            slowest_ns=rounded(mean.max()),
            spread_ns=rounded(((mean - mean.min()) * count).sum()),
            first_call_ns=rounded(excess.sum()),
            count=count.sum(),
        )
        .join(steps, on=OPERATOR, nulls_equal=True)
        .with_columns(spread_ns=pl.when("one_place").then("spread_ns"))
        .sort("rank", -pl.col("shapes"), -pl.col("total_ns"), "name", "full_name", "type", "unit")
        .select(names(COLUMNS))
    )
