"""Which operators on a device have dynamic shapes, which make it prepare or compile them again."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column

NO_STATES = "whether operators have static or dynamic shapes was not recorded"

COLUMNS = columns(
    "rank name type core count total_ns",
    Column("dynamic", "int64", "Calls with dynamic shapes.", importance=65),
    Column("static", "int64", "Calls with static shapes.", importance=64),
    Column("unknown", "int64", "Calls of which neither was recorded.", importance=20),
    Column("dynamic_ns", "int64", "Time of the calls with dynamic shapes.", title="of dynamic"),
    Column("shapes", "int64", "Number of different input shapes of these; 0 if shapes were not recorded."),
    nulls="type core",
)


@analysis("rank", COLUMNS, together=True, nothing=NO_STATES)
def dynamic_operators(operator_work: pl.DataFrame) -> pl.DataFrame:
    """Count the calls of each operator by the state of its shapes, those with the most dynamic time first.

    Ranks without any recorded state have no answer: that is unknown, not dynamic.
    """
    state, count = pl.col("state").fill_null(""), pl.col("count")
    is_dynamic, is_static = state == "dynamic", state == "static"
    keys = ["rank", "name", "type", "core"]
    return (
        operator_work.filter((is_dynamic | is_static).any().over("rank"))
        .group_by(keys, maintain_order=True)
        .agg(
            count=count.sum(),
            total_ns=pl.col("total_ns").sum(),
            dynamic=count.filter(is_dynamic).sum(),
            static=count.filter(is_static).sum(),
            unknown=count.filter(~(is_dynamic | is_static)).sum(),
            dynamic_ns=pl.col("total_ns").filter(is_dynamic).sum(),
            shapes=pl.col("input_shapes").filter(is_dynamic).drop_nulls().n_unique().cast(pl.Int64),
        )
        .select(names(COLUMNS))
        .sort("rank", -pl.col("dynamic_ns"), -pl.col("total_ns"), *keys[1:], nulls_last=True)
    )
