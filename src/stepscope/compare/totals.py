"""Which types of operators take more or less time, of sources that state totals of the recording and no steps."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.compare.noise import LIMITS, Limits
from stepscope.compare.registry import Sides, comparison
from stepscope.tables.base import Column

COLUMNS = columns(
    Column("unit", "string", "List that it belongs to, e.g. `AI_CORE`, `HOST_CPU`."),
    Column("type", "string", "Operator type."),
    Column("base_call_ns", "int64", "Mean time of a call on the base; null if the base has none.", title="base call"),
    Column("new_call_ns", "int64", "The same of the new side.", title="new call"),
    Column("change_factor", "float64", "`new_call_ns` over `base_call_ns`.", title="change"),
    Column("base_total_ns", "int64", "Time of all calls of the base, mean of its ranks.", title="base total"),
    Column("new_total_ns", "int64", "The same of the new side.", title="new total"),
    Column("base_calls", "float64", "Calls of the base, mean of its ranks.", title="base calls"),
    Column("new_calls", "float64", "The same of the new side.", title="new calls"),
    Column("verdict", "string", "Not tested over steps.", values=("same", "untested", "added", "removed")),
    nulls="unit type base_call_ns new_call_ns change_factor",
    keep="type unit change_factor new_call_ns base_call_ns new_total_ns",
)

_KEYS = ["unit", "type"]


@comparison(COLUMNS)
def operator_type_differences(operator_types: Sides, limits: Limits = LIMITS) -> pl.DataFrame:
    """Compare calls of operators by type over the whole recording, which may be of another length: one row each."""
    base, new = (_sums(side) for side in operator_types)
    both = base.join(new, on=_KEYS, how="full", coalesce=True, nulls_equal=True)
    call, new_call = (pl.col(f"total{end}") / pl.col(f"calls{end}") for end in ("", "_right"))
    verdict = (
        pl.when(pl.col("total").is_null())
        .then(pl.lit("added"))
        .when(pl.col("total_right").is_null())
        .then(pl.lit("removed"))
        .when((new_call - call).abs() <= limits.same_ratio * call)
        .then(pl.lit("same"))
        .otherwise(pl.lit("untested"))
    )
    found = both.select(
        *_KEYS,
        base_call_ns=call.round().cast(pl.Int64),
        new_call_ns=new_call.round().cast(pl.Int64),
        change_factor=pl.when(call > 0).then(new_call / call),
        base_total_ns=pl.col("total").fill_null(0.0).round().cast(pl.Int64),
        new_total_ns=pl.col("total_right").fill_null(0.0).round().cast(pl.Int64),
        base_calls=pl.col("calls").fill_null(0.0),
        new_calls=pl.col("calls_right").fill_null(0.0),
        verdict=verdict,
    )
    return found.select(names(COLUMNS)).sort(
        -(pl.col("new_total_ns") - pl.col("base_total_ns")).abs(), *_KEYS, nulls_last=True
    )


def _sums(types: pl.DataFrame) -> pl.DataFrame:
    ranks = max(types["rank"].n_unique(), 1)
    known = types.filter(pl.col("total_ns").is_not_null() & (pl.col("count") > 0))
    return known.group_by(_KEYS).agg(total=pl.col("total_ns").sum() / ranks, calls=pl.col("count").sum() / ranks)
