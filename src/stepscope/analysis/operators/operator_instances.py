"""Which operators and kernels take the time, each with its position in the model, shapes and launch geometry."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.operator_lists import (
    COLUMNS,
    DEVICE_UNITS,
    HOST_UNITS,
    PLACE,
    SHAPES,
    kernel_rows,
    operator_rows,
    stated_rows,
)
from stepscope.analysis.methods.statistics import grouped, rounded, row_count, sum_known
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

_NAMES = ("full_name", "name")

INSTANCE_COLUMNS = columns(
    "rank unit type name full_name",
    Column("framework_name", "string", "Framework operator that it was compiled from; null if not recorded."),
    Column("subgraph", "string", "Part of the model, e.g. `Default`, `Gradients`; null if not recorded."),
    "graph core",
    meaning("kind", "Kind of device work; null for host operators."),
    "stream",
    Column("block_dim", "int64", "Blocks or cores used."),
    Column("block", "string", "Thread block of the launch."),
    Column("grid", "string", "Grid of the launch."),
    "count total_ns mean_ns min_ns max_ns",
    meaning("share_ratio", "Share of its list's time (self time if operators call each other)."),
    "self_ns wait_ns",
    Column("mean_wait_ns", "int64", "`wait_ns` over `count`."),
    "activity_ns activities cube_flops cube_flops_per_s vector_flops vector_flops_per_s",
    "process",
    Column("inputs", "string", "Inputs and outputs as recorded (JSON)."),
    "input_shapes",
    Column("input_types", "string", "Data types of the inputs."),
    keep="name total_ns share_ratio count self_ns unit mean_ns input_shapes",
)


@analysis("rank", INSTANCE_COLUMNS, together=True)
def operator_instances(
    operator_totals: pl.LazyFrame | None,
    kernels: pl.LazyFrame | None,
    operators: pl.LazyFrame | None,
    ranks: pl.LazyFrame | None,
) -> pl.DataFrame:
    """List operators and kernels with their times, list by list (`unit`).

    Lists that a source states are used unchanged. If none is stated for the device, its kernels are summed by name,
    type, core, stream, launch geometry and shapes; likewise operators if none is stated for the host. Each is in one
    list only.

    Args:
        operator_totals: Stated lists.
        kernels: Device work.
        operators: Host operators; list `HOST_CPU` if there is a device, else `CPU`.
        ranks: What each rank computes on.

    Returns:
        One row per operator or kernel, list by list, longest total first.

    Raises:
        Unavailable: If none of these was recorded.
    """
    stated = stated_rows(operator_totals)
    parts = [stated]
    if kernels is not None:
        parts.append(_summed(kernel_rows(_unstated(kernels, stated, DEVICE_UNITS), ranks), row_count(kernels)))
    if operators is not None:
        parts.append(_summed(operator_rows(_unstated(operators, stated, HOST_UNITS), kernels), row_count(operators)))
    found = pl.concat(parts)
    if found.is_empty():
        raise Unavailable("neither operators, kernels nor totals of operators were recorded")
    return _told(found)


def _unstated(rows: pl.LazyFrame, stated: pl.DataFrame, units: tuple[str, ...]) -> pl.LazyFrame:
    """The rows of ranks for which no such list is stated."""
    known = stated.filter(pl.col("unit").is_in(units))["rank"].unique().to_list()
    return rows.filter(~pl.col("rank").is_in(known)) if known else rows


def _summed(rows: pl.LazyFrame, count: int) -> pl.DataFrame:
    """Single calls as rows of `COLUMNS`."""
    there = set(rows.collect_schema().names())
    keys = ["rank", "unit", *(name for name in (*PLACE, *SHAPES) if name in there)]
    duration = pl.col("duration_ns")
    statistics = [
        pl.len().cast(pl.Int64).alias("count"),
        duration.sum().alias("total_ns"),
        duration.min().alias("min_ns"),
        duration.max().alias("max_ns"),
        *(sum_known(name) for name in ("self_ns", "wait_ns", "activity_ns", "activities")),
    ]
    found = grouped(rows, keys, statistics, count)
    missing = {name: pl.lit(None, dtype) for name, dtype in COLUMNS.items() if name not in found.columns}
    return found.with_columns(**missing).select(list(COLUMNS)).cast(pl.Schema(COLUMNS))


def _told(rows: pl.DataFrame) -> pl.DataFrame:
    own = pl.coalesce("self_ns", "total_ns")
    whole = own.sum().over("rank", "unit")
    # With the reciprocal, as in `share`: the same to the last digit for any number of ranks.
    per_s = pl.when(pl.col("total_ns") > 0).then(1 / pl.col("total_ns")) * pl.col("count") * 1e9
    derived = rows.with_columns(
        mean_ns=rounded(pl.col("total_ns") / pl.col("count")),
        mean_wait_ns=rounded(pl.col("wait_ns") / pl.col("count")),
        share_ratio=pl.when(whole > 0).then(own * (1 / whole)).otherwise(0.0),
        cube_flops_per_s=pl.col("cube_flops") * per_s,
        vector_flops_per_s=pl.col("vector_flops") * per_s,
    )
    return derived.select(names(INSTANCE_COLUMNS)).sort(
        "rank", "unit", -pl.col("share_ratio"), *_NAMES, *(name for name in (*PLACE, *SHAPES) if name not in _NAMES)
    )
