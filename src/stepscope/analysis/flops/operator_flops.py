"""The FLOPs of each operator and their rate: as stated, from hardware counters, or from shapes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.flops.flops import KEYS, countable
from stepscope.analysis.methods.flop_convolutions import Call
from stepscope.analysis.methods.flop_formulas import COUNTED, counts
from stepscope.analysis.methods.launched_work import with_device_time
from stepscope.analysis.methods.operator_lists import kernel_rows, named_operators
from stepscope.analysis.methods.shapes import tensors
from stepscope.analysis.methods.statistics import per_second, share_of
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.errors import Unavailable
from stepscope.tables import KERNEL_COUNTERS, RANKS
from stepscope.tables.base import Column, schema_of, with_schema

_PLACE = ["rank", "unit", "type", "name", "full_name", "input_shapes", "input_types"]

_RAW = {
    "rank": pl.Int32(),
    **dict.fromkeys(_PLACE[1:], pl.String()),
    **dict.fromkeys(("count", "step_count"), pl.Int64()),
    **dict.fromkeys(("flops", "cube_flops", "vector_flops"), pl.Float64()),
    **{"total_ns": pl.Int64(), "found_by": pl.String()},
}
"""Columns that each method returns; `flops` are of one call."""

_EITHER = pl.sum_horizontal("cube_flops", "vector_flops")
_IS_STATED = pl.col("cube_flops").is_not_null() | pl.col("vector_flops").is_not_null()

COLUMNS = columns(
    "rank unit type name full_name input_shapes",
    meaning("data_type", "Data type of the first input."),
    "count",
    Column("step_count", "int64", "Number of calls inside steps."),
    "flops cube_flops vector_flops",
    meaning("total_ns", "Total time on the device (on the host if there is no device)."),
    "flops_per_s cube_flops_per_s vector_flops_per_s",
    meaning("share_ratio", "Share of all known FLOPs."),
    "found_by",
    keep="name flops input_shapes share_ratio flops_per_s count total_ns data_type",
    titles={
        "flops": "FLOPs per call",
        "cube_flops": "cube FLOPs per call",
        "vector_flops": "vector FLOPs per call",
        "flops_per_s": "rate",
        "cube_flops_per_s": "cube rate",
        "vector_flops_per_s": "vector rate",
        "total_ns": "total time",
        "share_ratio": "share of FLOPs",
    },
)


UNKNOWN_FLOPS = (
    "no FLOPs are stated, and no shapes of matrix products, convolutions or attention were recorded. "
    "Record with shapes (record_shapes), or on Ascend with the metrics ArithmeticUtilization"
)


@analysis("rank", COLUMNS, together=True, nothing=UNKNOWN_FLOPS)
def operator_flops(
    operator_instances: pl.DataFrame | None,
    flops: pl.DataFrame | None,
    operators: pl.LazyFrame | None,
    kernels: pl.LazyFrame | None,
    kernel_counters: pl.LazyFrame | None,
    ranks: pl.LazyFrame | None,
) -> pl.DataFrame:
    """Find the FLOPs of each operator and their rate.

    Uses the first of these that each rank has: what the source states for its operators; hardware counters
    (`cube_fops`, `vector_fops` of `kernel_counters`); the formulas of `flops` on the shapes of kernels, then of
    operators. Time is device time if the work ran on a device.

    Returns:
        One row per operator, most FLOPs first.

    Raises:
        Unavailable: If the FLOPs are unknown.
    """
    ways: list[Callable[[], pl.DataFrame]] = []
    if operator_instances is not None:
        ways.append(lambda: _stated(operator_instances))
    if kernels is not None:
        ways.append(lambda: _by_counters(kernels, KERNEL_COUNTERS.or_empty(kernel_counters), ranks))
        ways.append(lambda: _by_kernels(kernels, ranks))
    if flops is not None and operators is not None:
        ways.append(lambda: _by_operators(flops, operators, kernels))
    found = pl.DataFrame(schema=_RAW)
    everyone = {*ranks_of(RANKS.or_empty(ranks))}
    for way in ways:
        if everyone and everyone.issubset(found["rank"].unique()):
            break
        rows = way()
        known = rows.filter(pl.col("flops").is_not_null())["rank"].unique()
        fresh = rows.filter(pl.col("rank").is_in(known.implode())).join(found, on="rank", how="anti")
        found = pl.concat([found, with_schema(fresh, _RAW)])
    if found.is_empty():
        raise Unavailable(UNKNOWN_FLOPS)
    return _with_rates(found)


@analysis("rank", COLUMNS, together=True, every_step=True)
def stated_operator_flops(operator_instances: pl.DataFrame | None) -> pl.DataFrame:
    """The FLOPs that a source states for its operators, as totals of all steps: those of `operator_flops`, also where
    the user selects steps, which such totals do not tell apart. No rows of other ranks."""
    if operator_instances is None:
        return pl.DataFrame(schema=schema_of(COLUMNS))
    return _with_rates(with_schema(_stated(operator_instances), _RAW))


def _with_rates(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with what follows from them, in order."""
    whole = pl.col("flops") * pl.col("count")
    return (
        rows.with_columns(
            **{f"{name}_per_s": per_second(name) for name in ("flops", "cube_flops", "vector_flops")},
            whole=whole,
            share_ratio=share_of(whole, "rank", default=None),
        )
        .sort("rank", "full_name", "name", "input_shapes", "input_types", "unit", "type", "count", "total_ns")
        .sort("rank", -pl.col("whole"), nulls_last=True, maintain_order=True)
        .with_columns(data_type=pl.col("input_types").str.extract(r"(\w+(?:::\w+)?)"))
        .select(names(COLUMNS))
    )


def _stated(instances: pl.DataFrame) -> pl.DataFrame:
    """From the FLOPs that a source states for its operators."""
    return instances.filter(_IS_STATED).with_columns(flops=_EITHER, step_count="count", found_by=pl.lit("stated"))


def _by_counters(kernels: pl.LazyFrame, counters: pl.LazyFrame, ranks: pl.LazyFrame | None) -> pl.DataFrame:
    """From hardware counters; kernels of the same name and shape are combined."""
    cube, vector = pl.coalesce("cube_fops", "aic_cube_fops"), pl.coalesce("vector_fops", "aiv_vector_fops")
    measured = counters.select("rank", "kernel", cube_flops=cube, vector_flops=vector).filter(_IS_STATED)
    calls = kernel_rows(kernels, ranks).join(measured, on=["rank", "kernel"])
    rows = _summed(calls, [pl.col("cube_flops", "vector_flops").mean()])
    return rows.with_columns(flops=_EITHER, found_by=pl.lit("counters"))


def _by_kernels(kernels: pl.LazyFrame, ranks: pl.LazyFrame | None) -> pl.DataFrame:
    """From the shapes of kernels of counted types."""
    counted = kernels.filter(pl.col("input_shapes").is_not_null() & pl.col("type").is_in(list(COUNTED)))
    summed = _summed(kernel_rows(counted, ranks), [], ["output_shapes"])
    found: list[int | None] = []
    shapes = summed.select("rank", "type", "input_shapes", "output_shapes")
    parsed = cache(tensors)
    for part in shapes.partition_by("rank", maintain_order=True, include_key=False):
        found += counts([Call(kind, parsed(i), outputs=parsed(o)) for kind, i, o in part.iter_rows()])
    return _uncoloured(summed.with_columns(pl.Series("flops", found, pl.Float64)))


def _by_operators(flops: pl.DataFrame, operators: pl.LazyFrame, kernels: pl.LazyFrame | None) -> pl.DataFrame:
    """From the shapes of operators; calls without shapes are listed too, to show what is unknown."""
    used = [*_PLACE, "called", "input_values", "step", "thread", "slice", "start_ns", "duration_ns"]
    calls = named_operators(countable(operators).with_columns(called="name"), kernels).select(used).collect()
    timed = with_device_time(calls, operators, kernels)
    each = flops.select("rank", *KEYS, "flops").rename({"name": "called"})
    joined = timed.join(each, on=["rank", "called", *KEYS[1:]], how="left", nulls_equal=True)
    spent = joined.with_columns(duration_ns=pl.coalesce("device_ns", "duration_ns"))
    return _uncoloured(_summed(spent.lazy(), [pl.col("flops").first().cast(pl.Float64)], ["input_values"]))


def _summed(rows: pl.LazyFrame, more: list[pl.Expr], keys: list[str] | None = None) -> pl.DataFrame:
    """Calls grouped by operator, shape and type."""
    return (
        rows.group_by(*_PLACE, *(keys or []), maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            pl.col("step").count().cast(pl.Int64).alias("step_count"),
            pl.col("duration_ns").sum().alias("total_ns"),
            *more,
        )
        .sort("rank", maintain_order=True)
        .collect()
    )


def _uncoloured(rows: pl.DataFrame) -> pl.DataFrame:
    """Formulas do not distinguish cube from vector operations."""
    unknown = pl.lit(None, pl.Float64)
    return rows.with_columns(cube_flops=unknown, vector_flops=unknown, found_by=pl.lit("shapes"))
