"""Which operators and kernels take the time, each with its position in the model, shapes and launch geometry; and which
types of operators."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.launched_work import launching
from stepscope.analysis.methods.operator_lists import (
    COLUMNS,
    DEVICE_UNITS,
    HOST_UNITS,
    PLACE,
    SHAPES,
    UNITS,
    kernel_rows,
    named_operators,
    stated_rows,
)
from stepscope.analysis.methods.statistics import per_second, rounded, share_of, sum_known
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables.base import Column, with_schema

OWN = pl.coalesce("self_ns", "total_ns")
"""What counts towards the time of a list."""

NO_OPERATORS = "neither operators, kernels nor totals of operators were recorded"

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


_KEYS = ("rank", "unit", *PLACE, *SHAPES)

_KNOWN = ("self_ns", "wait_ns", "activity_ns", "activities")

_ID = "external_id"


@analysis("rank", INSTANCE_COLUMNS, together=True, nothing=NO_OPERATORS)
def operator_instances(
    operator_totals: pl.LazyFrame | None,
    kernels: pl.LazyFrame | None,
    operators: pl.LazyFrame | None,
    ranks: pl.LazyFrame | None,
) -> pl.DataFrame:
    """List operators and kernels with their times, list by list (`unit`), longest total first.

    Lists that a source states are used unchanged. If none is stated for the device, its kernels are summed by name,
    type, core, stream, launch geometry and shapes; likewise operators if none is stated for the host: as `HOST_CPU` if
    there is a device, else as `CPU`. Each is in one list only.

    Raises:
        Unavailable: If none of these was recorded.
    """
    stated = stated_rows(operator_totals)
    parts = [stated]
    if kernels is not None:
        parts.append(_summed(kernel_rows(_alike(_unstated(kernels, stated, DEVICE_UNITS)), ranks)))
    if operators is not None:
        calls = _unstated(operators, stated, HOST_UNITS)
        parts.append(_summed(named_operators(_with_work(_alike(calls), calls, kernels), kernels)))
    found = pl.concat(parts)
    if found.is_empty():
        raise Unavailable(NO_OPERATORS)
    return _with_rates(found)


def _unstated(rows: pl.LazyFrame, stated: pl.DataFrame, units: tuple[str, ...]) -> pl.LazyFrame:
    """The rows of ranks for which no such list is stated."""
    known = stated.filter(pl.col("unit").is_in(units))["rank"].unique().to_list()
    return rows.filter(~pl.col("rank").is_in(known)) if known else rows


def _alike(calls: pl.LazyFrame) -> pl.LazyFrame:
    """Single calls summed where names, shapes and all else that identifies an operator are recorded alike."""
    duration, there = pl.col("duration_ns"), calls.collect_schema().names()
    rows = calls.group_by(name for name in _KEYS if name in there).agg(
        pl.len().cast(pl.Int64).alias("count"),
        duration.sum().alias("total_ns"),
        duration.min().alias("min_ns"),
        duration.max().alias("max_ns"),
        *(sum_known(name) for name in _KNOWN if name in there),
    )
    return rows.collect(engine="streaming").lazy()


def _with_work(alike: pl.LazyFrame, operators: pl.LazyFrame, kernels: pl.LazyFrame | None) -> pl.LazyFrame:
    """The sums of operators with `activity_ns` and `activities`, of the kernels that they launched directly."""
    keys = [name for name in alike.collect_schema().names() if name in _KEYS]
    sums = pl.col("device_ns", "activities").sum()
    batches = launching(operators, kernels, *(name for name in keys if name != "rank"))
    work = pl.concat(batch.group_by(keys).agg(sums) for batch in batches).group_by(keys).agg(sums)
    return alike.join(work.rename({"device_ns": "activity_ns"}).lazy(), on=keys, how="left", nulls_equal=True)


def _summed(alike: pl.LazyFrame) -> pl.DataFrame:
    """Sums of calls as rows of `COLUMNS`: names that are recorded differently may be of one operator."""
    there = alike.collect_schema().names()
    sums = alike.group_by(name for name in _KEYS if name in there).agg(
        pl.col("count", "total_ns").sum(),
        pl.col("min_ns").min(),
        pl.col("max_ns").max(),
        *(sum_known(name) for name in _KNOWN if name in there),
    )
    return with_schema(sums.collect(), COLUMNS)


def _with_rates(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with what follows from them, in order."""
    more = rows.with_columns(
        mean_ns=rounded(pl.col("total_ns") / pl.col("count")),
        mean_wait_ns=rounded(pl.col("wait_ns") / pl.col("count")),
        share_ratio=share_of(OWN, "rank", "unit"),
        cube_flops_per_s=per_second("cube_flops"),
        vector_flops_per_s=per_second("vector_flops"),
    )
    order = ("full_name", "name", *(name for name in (*PLACE, *SHAPES) if name not in ("full_name", "name")))
    return more.select(names(INSTANCE_COLUMNS)).sort("rank", "unit", -pl.col("share_ratio"), *order)


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
    """Sum each list of operators by type, longest total first; a list stated by type is used unchanged."""
    keys = ["rank", "unit", "type"]
    place = pl.when(pl.col("full_name").count() > 0).then(pl.col("full_name").n_unique())
    found = operator_instances.group_by(keys).agg(
        place.otherwise(pl.col("name").n_unique()).cast(pl.Int64).alias("operators"),
        pl.col("count").sum(),
        *(sum_known(name) for name in _SUMS),
    )
    if operator_totals is not None:
        found = _with_stated(found, operator_totals)
    return (
        found.with_columns(
            mean_ns=rounded(pl.col("total_ns") / pl.col("count")), share_ratio=share_of(OWN, "rank", "unit")
        )
        .select(*keys, "operators", "count", "total_ns", "mean_ns", "share_ratio", *_SUMS[1:])
        .sort("rank", "unit", "share_ratio", "type", descending=[False, False, True, False])
    )


def _with_stated(made: pl.DataFrame, totals: pl.LazyFrame) -> pl.DataFrame:
    """The stated types, completed with the computed ones of other lists and with figures that the source lacks."""
    keys, figures = ["rank", "unit", "type"], made.columns[3:]
    stated = totals.filter((pl.col("level") == "type") & pl.col("unit").is_in(UNITS)).collect()
    types = stated.with_columns(type=pl.coalesce("type", "name"), self_ns=pl.lit(None, pl.Int64))
    known = types.select(*keys, *figures)
    filled = known.join(made, on=keys, how="left", suffix="_made", maintain_order="left").select(
        *keys, *(pl.coalesce(name, f"{name}_made").alias(name) for name in figures)
    )
    return pl.concat([filled, made.join(known, on=["rank", "unit"], how="anti")])
