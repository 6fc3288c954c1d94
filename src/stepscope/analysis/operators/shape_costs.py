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
    Column("once", "int64", "Number of shapes that occur once."),
    "steps count total_ns",
    Column("fastest_ns", "int64", "Mean time of the fastest shape."),
    Column("slowest_ns", "int64", "Mean time of the slowest shape."),
    Column("spread_ns", "int64", "Extra time over all calls at the fastest shape; null if a step has several."),
    Column("first_call_ns", "int64", "Extra time of each shape's first call over the median of its later calls."),
    keep="name shapes total_ns spread_ns count type slowest_ns fastest_ns",
)


@analysis("rank", COLUMNS, together=True)
def shape_costs(shape_executions: pl.DataFrame) -> pl.DataFrame:
    """Summarise operators with changing shapes over all steps.

    * `spread_ns`: the extra time compared with all calls at the shape that is fastest on average: an upper bound of
      what bucketing or padding to that shape could save. Null if an operator has several shapes within a step, as it is
      then used at several positions in the model.
    * `first_call_ns`: the extra time of the first call with each shape compared with the median of its later calls: the
      cost of new shapes (compiling, choosing algorithms, growing memory). Shapes that occur once do not count, as there
      is nothing to compare with.

    Returns:
        One row per operator, most shapes first.

    Raises:
        Unavailable: If executions were recorded without shapes.
    """
    rows = shape_executions.filter(pl.col("input_shapes").is_not_null())
    if rows.is_empty():
        raise Unavailable("executions were recorded by step, but without shapes")
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
