"""Which types of operators take the time, list by list."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.operator_lists import UNITS
from stepscope.analysis.methods.statistics import rounded, sum_known
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column

_SUMS = ("total_ns", "self_ns", "wait_ns", "activity_ns", "activities")


@analysis(
    "rank",
    columns(
        "rank unit",
        Column("type", "string", "Operator type."),
        Column("operators", "int64", "Number of operators or kernels of the type."),
        "count total_ns mean_ns",
        meaning("share_ratio", "Share of its list's time (self time if operators call each other)."),
        "self_ns wait_ns activity_ns activities",
        keep="type total_ns share_ratio unit count self_ns mean_ns",
    ),
    together=True,
)
def operator_types(operator_instances: pl.DataFrame, operator_totals: pl.LazyFrame | None) -> pl.DataFrame:
    """Sum each list of operators by type; a list that a source states by type is used unchanged.

    Args:
        operator_instances: The operators.
        operator_totals: Stated lists.

    Returns:
        One row per type, list by list, longest total first.
    """
    keys = ["rank", "unit", "type"]
    operators = pl.col("full_name").n_unique().cast(pl.Int64)
    made = operator_instances.group_by(keys).agg(
        pl.when(pl.col("full_name").count() > 0)
        .then(operators)
        .otherwise(pl.col("name").n_unique())
        .alias("operators"),
        pl.col("count").sum(),
        *(sum_known(name) for name in _SUMS),
    )
    found = made.cast({"operators": pl.Int64})
    if operator_totals is not None:
        found = _with_stated(found, operator_totals)
    own = pl.coalesce("self_ns", "total_ns")
    whole = own.sum().over("rank", "unit")
    return (
        found.with_columns(
            mean_ns=rounded(pl.col("total_ns") / pl.col("count")),
            share_ratio=pl.when(whole > 0).then(own * (1 / whole)).otherwise(0.0),
        )
        .select(*keys, "operators", "count", "total_ns", "mean_ns", "share_ratio", *_SUMS[1:])
        .sort("rank", "unit", "share_ratio", "type", descending=[False, False, True, False])
    )


def _with_stated(made: pl.DataFrame, totals: pl.LazyFrame) -> pl.DataFrame:
    """The stated types, completed with the computed ones of other lists and with figures that the source lacks."""
    stated = totals.filter((pl.col("level") == "type") & pl.col("unit").is_in(UNITS)).collect()
    columns = made.columns
    types = stated.select(
        *("rank", "unit"),
        pl.coalesce("type", "name").alias("type"),
        *("operators", "count", "total_ns"),
        *(pl.lit(None, pl.Int64).alias("self_ns"), "wait_ns", "activity_ns", "activities"),
    )
    lists = types.select("rank", "unit").unique()
    more = made.rename({name: f"{name}_made" for name in columns[3:]})
    filled = types.join(more, on=["rank", "unit", "type"], how="left").select(
        *columns[:3], *(pl.coalesce(name, f"{name}_made").alias(name) for name in columns[3:])
    )
    return pl.concat([filled, made.join(lists, on=["rank", "unit"], how="anti")])
