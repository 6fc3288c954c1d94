"""How often each rank runs each class of kernels in a step, and how long they take: what ranks are compared by."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.names import named
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.analysis.step.activity import COMMUNICATION_CALL
from stepscope.errors import Unavailable
from stepscope.tables import KERNELS, OPERATORS
from stepscope.tables.base import Column

CLASS = ["kind", "name", "core"]
"""Columns that identify a class."""

_OF_KERNELS = ["rank", "kind", "name", "type", "core", "input_shapes", "input_types", "grid", "bytes"]
_OF_OPERATORS = ["rank", "name", "type", "input_shapes", "input_types"]

COLUMNS = columns(
    "rank",
    Column("kind", "string", "Kind of work.", values=("compute", "memory")),
    Column("name", "string", "Operator type of the kernels, else their name; on a CPU, of operators."),
    "core",
    Column("variant", "string", "Shapes and types, launch grid or size of its calls; null if not recorded."),
    Column("calls", "int64", "Number of calls in all steps."),
    meaning("total_ns", "Their total time in all steps; on a CPU, outside of other operators."),
    meaning("steps", "Number of recorded steps of the rank."),
    Column("on_host", "bool", "True for operators of a rank without device work."),
    nulls="core variant",
)


@analysis("rank", COLUMNS, together=True)
def kernel_classes(
    steps: pl.LazyFrame, kernels: pl.LazyFrame | None = None, operators: pl.LazyFrame | None = None
) -> pl.DataFrame:
    """Sum up each rank's kernels in its steps by class and variant, in order; on a CPU, its operators.

    Communication does not count, as it waits for others.

    Raises:
        Unavailable: If neither kernels nor operators of a rank were recorded.
    """
    device = _kernels(KERNELS.or_empty(kernels))
    on_device = device.filter(pl.col("kind") == "compute")["rank"].unique().to_list()
    host = _operators(OPERATORS.or_empty(operators).filter(~pl.col("rank").is_in(on_device)))
    found = pl.concat([device.with_columns(on_host=False), host.with_columns(on_host=True)])
    every = ranks_of(steps)
    having = {*on_device, *host["rank"].unique()}
    if unknown := [rank for rank in every if rank not in having]:
        raise Unavailable("no computing was recorded by kernel or operator", of=unknown)
    counted = steps.filter(pl.col("recorded").fill_null(True)).group_by("rank").agg(steps=pl.len().cast(pl.Int64))
    keys = ["rank", *CLASS, "variant"]
    return (
        found.group_by(keys)
        .agg(pl.col("calls", "total_ns").sum(), pl.col("on_host").all())
        .join(counted.collect(), on="rank")
        .select(names(COLUMNS))
        .sort(keys, nulls_last=True)
    )


def _kernels(kernels: pl.LazyFrame) -> pl.DataFrame:
    rows = kernels.filter((pl.col("kind") != "communication") & pl.col("step").is_not_null()).with_columns(
        bytes=pl.when(pl.col("kind") == "memory").then("size_bytes")
    )
    sums = rows.group_by(_OF_KERNELS).agg(calls=pl.len().cast(pl.Int64), total_ns=pl.col("duration_ns").sum())
    return _as_classes(sums.collect(engine="streaming"), "input_shapes", "input_types", "grid", "bytes")


def _operators(operators: pl.LazyFrame) -> pl.DataFrame:
    computing = operators.filter(pl.col("step").is_not_null())
    is_call = named(computing, call=pl.col("name").str.contains(COMMUNICATION_CALL))["call"]
    sums = (
        computing.filter(~is_call.fill_null(False))
        .group_by(_OF_OPERATORS)
        .agg(calls=pl.len().cast(pl.Int64), total_ns=pl.coalesce("self_ns", "duration_ns").sum())
        .with_columns(kind=pl.lit("compute"), core=pl.lit(None, pl.String))
    )
    return _as_classes(sums.collect(engine="streaming"), "input_shapes", "input_types")


def _as_classes(sums: pl.DataFrame, *parts: str) -> pl.DataFrame:
    """The sums with the class's `name` and `variant` instead of what these are made of."""
    texts = [pl.col(part).cast(pl.String) for part in parts]
    variant = pl.concat_str(texts, separator=" ", ignore_nulls=True)
    return sums.select(
        "rank",
        "kind",
        name=pl.coalesce("type", "name"),
        core="core",
        variant=pl.when(pl.any_horizontal(text.is_not_null() for text in texts)).then(variant),
        calls="calls",
        total_ns="total_ns",
    )
