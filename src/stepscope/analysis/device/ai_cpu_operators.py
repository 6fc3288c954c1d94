"""Operators that run on the processor of an Ascend device (AI CPU) instead of its AI cores."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.code_places import places
from stepscope.analysis.methods.intervals import END, covered, union
from stepscope.analysis.methods.launch_owners import owners
from stepscope.analysis.registry import analysis
from stepscope.tables import KERNELS, OPERATORS
from stepscope.tables.base import Column

AI_CPU = "AI_CPU"

RARE_TYPES = ("DOUBLE", "FLOAT64", "INT64", "INT16", "UINT16", "UINT32", "UINT64", "COMPLEX", "STRING", "BOOL")
"""Data types that AI cores compute with for few operators only, as they begin."""

_OPERATOR = ["rank", "name", "type", "input_shapes", "input_types"]

COLUMNS = columns(
    "rank name type input_shapes",
    Column("input_types", "string", "Data types of the inputs, as recorded.", importance=58),
    Column("operator", "string", "Framework operator that launches it; null if unknown.", importance=57),
    Column("code", "string", "Line of the user's code that calls it; null without recorded stacks.", importance=66),
    Column(
        "rare_types",
        "list[string]",
        "Its data types that AI cores support for few operators, a likely reason.",
        title="rare types",
        importance=59,
    ),
    "count total_ns mean_ns max_ns",
    Column(
        "exposed_ns", "int64", "Part of its time in which the device does nothing else.", title="exposed", importance=64
    ),
    nulls="type input_shapes input_types operator code",
    keep="rank type total_ns exposed_ns count code",
)


@analysis("rank", COLUMNS, together=True)
def ai_cpu_operators(
    kernels: pl.LazyFrame,
    operators: pl.LazyFrame | None = None,
    slices: pl.LazyFrame | None = None,
    stacks: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Sum up the operators that ran on the AI CPU in the steps, by operator, shapes and types, the longest first."""
    of_steps = pl.col("step").is_not_null()
    is_own = (pl.col("core") == AI_CPU) & (pl.col("kind") == "compute") & of_steps
    columns = [*_OPERATOR, "kernel", "start_ns", "duration_ns"]
    rows = kernels.filter(is_own).select(columns).collect(engine="streaming")
    if rows.is_empty():
        return pl.DataFrame(schema={one: pl.Null() for one in names(COLUMNS)})
    ranks = rows["rank"].unique().to_list()
    rows = rows.sort("rank", "kernel").with_row_index("row")
    rows = rows.with_columns(exposed_ns=_exposed(rows, kernels.filter(pl.col("rank").is_in(ranks))))
    own = KERNELS.or_empty(kernels).join(rows.lazy().select("rank", "kernel"), on=["rank", "kernel"], how="semi")
    owned = owners(own, OPERATORS.or_empty(operators), slices)
    called = OPERATORS.or_empty(operators).select("rank", "slice", operator="name")
    named = called.join(owned.lazy().select("rank", "slice").unique(), on=["rank", "slice"], how="semi").collect()
    placed = owned.join(named, on=["rank", "slice"], how="left").join(
        places(owned, operators, stacks, slices), on=["rank", "slice"], how="left"
    )
    known = rows.join(placed.drop("slice"), on=["rank", "kernel"], how="left", maintain_order="left")
    duration = pl.col("duration_ns")
    sums = known.group_by(*_OPERATOR, maintain_order=True).agg(
        operator=pl.col("operator").drop_nulls().first(),
        code=pl.col("code").drop_nulls().first(),
        count=pl.len().cast(pl.Int64),
        total_ns=duration.sum(),
        mean_ns=duration.mean().round().cast(pl.Int64),
        max_ns=duration.max(),
        exposed_ns=pl.col("exposed_ns").sum(),
    )
    types = pl.col("input_types").fill_null("").str.to_uppercase().str.strip_chars('"').str.split(";")
    plain = types.list.eval(pl.element().str.strip_prefix("DT_"))
    is_rare = pl.any_horizontal(pl.element().str.starts_with(one) for one in RARE_TYPES)
    rare = plain.list.eval(pl.element().filter(is_rare).unique().sort())
    return (
        sums.with_columns(rare_types=rare)
        .select(names(COLUMNS))
        .sort("rank", -pl.col("total_ns"), *_OPERATOR[1:], nulls_last=True)
    )


def _exposed(rows: pl.DataFrame, kernels: pl.LazyFrame) -> pl.Series:
    """The part of each row's time in which no other kind of device work runs."""
    is_other = pl.col("core").ne_missing(AI_CPU) | (pl.col("kind") != "compute")
    others = kernels.filter(is_other).select("rank", "start_ns", end_ns=END).collect(engine="streaming")
    busy = union(others, ["rank"])
    start = covered(rows.select("rank", "row", at="start_ns"), busy)
    end = covered(rows.select("rank", "row", at=END), busy)
    exposed: pl.Series = rows["duration_ns"] - (end - start)
    return exposed
