"""How often each rank runs each class of kernels in a step, and how long they take: what ranks are compared by."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.names import named
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.analysis.step.host_work import COMMUNICATION_CALL
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables import KERNELS, OPERATORS
from stepscope.tables.base import Column

CLASS = ["kind", "name", "core"]
"""Columns that identify a class."""

SIZES = ("shapes", "grid")
"""What is known of the size of the work of calls: shapes or bytes, or only the launch grid, which may be equal for
unequal work (persistent kernels, grouped matrix products, grids with an upper limit)."""

_OF_KERNELS = ["rank", "kind", "name", "type", "core", "input_shapes", "input_types", "grid", "bytes"]
_OPERATOR = ["operator_shapes", "operator_types"]
_OF_OPERATORS = ["rank", "name", "type", "input_shapes", "input_types"]


@dataclass(frozen=True)
class Limits:
    """What tells calls apart."""

    operator_variants: int = limit(
        64,
        "shapes of the launching operators, of one class on one rank",
        "chosen by us: of more, few would be alike on other ranks, and all of them as long a table as the recording",
    )


LIMITS = Limits()

COLUMNS = columns(
    "rank",
    Column("kind", "string", "Kind of work.", values=("compute", "memory")),
    Column("name", "string", "Operator type of the kernels, else their name; on a CPU, of operators."),
    "core",
    Column(
        "variant",
        "string",
        "Shapes and types, of its calls or of the operators that launched them, launch grid or size; null if not "
        "recorded.",
    ),
    Column("sized_by", "string", "What tells the size of its calls; null if nothing does.", values=SIZES),
    Column("calls", "int64", "Number of calls in all steps."),
    meaning("total_ns", "Their total time in all steps; on a CPU, outside of other operators."),
    meaning("steps", "Number of recorded steps of the rank."),
    Column("on_host", "bool", "True for operators of a rank without device work."),
    nulls="core variant sized_by",
)


@analysis("rank", COLUMNS, together=True)
def kernel_classes(
    steps: pl.LazyFrame,
    kernels: pl.LazyFrame | None = None,
    operators: pl.LazyFrame | None = None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Sum up each rank's kernels in its steps by class and variant, in order; on a CPU, its operators.

    Communication does not count, as it waits for others.

    Raises:
        Unavailable: If neither kernels nor operators of a rank were recorded.
    """
    device = _kernels(KERNELS.or_empty(kernels), OPERATORS.or_empty(operators), ranks_of(steps), limits)
    on_device = device.filter(pl.col("kind") == "compute")["rank"].unique().to_list()
    host = _operators(OPERATORS.or_empty(operators).filter(~pl.col("rank").is_in(on_device)))
    found = pl.concat([device.with_columns(on_host=False), host.with_columns(on_host=True)])
    every = ranks_of(steps)
    having = {*on_device, *host["rank"].unique()}
    if unknown := [rank for rank in every if rank not in having]:
        raise Unavailable("no computing was recorded by kernel or operator", of=unknown)
    counted = steps.filter(pl.col("recorded").fill_null(True)).group_by("rank").agg(steps=pl.len().cast(pl.Int64))
    keys = ["rank", *CLASS, "variant", "sized_by"]
    return (
        found.group_by(keys)
        .agg(pl.col("calls", "total_ns").sum(), pl.col("on_host").all())
        .join(counted.collect(), on="rank")
        .select(names(COLUMNS))
        .sort(keys, nulls_last=True)
    )


def _kernels(kernels: pl.LazyFrame, operators: pl.LazyFrame, ranks: list[int], limits: Limits) -> pl.DataFrame:
    rows = kernels.filter((pl.col("kind") != "communication") & pl.col("step").is_not_null()).with_columns(
        bytes=pl.when(pl.col("kind") == "memory").then("size_bytes")
    )
    launching = operators.filter(
        pl.col("external_id").is_not_null() & pl.col("input_shapes").str.contains(r"\d").fill_null(value=False)
    )
    shaped = launching.select("rank").unique().collect(engine="streaming")["rank"].to_list()
    unshaped = rows.filter(pl.col("input_shapes").is_null() & pl.col("external_id").is_not_null())
    asked = unshaped.filter(pl.col("rank").is_in(shaped)).select("rank").unique().collect(engine="streaming")["rank"]
    wanted = [rank for rank in ranks if rank in set(asked)]
    parts = [_sums(rows.filter(~pl.col("rank").is_in(wanted)).with_columns(_null(name) for name in _OPERATOR))]
    for rank in wanted:  # one after the other, as the operators of all ranks are many
        own = launching.filter(pl.col("rank") == rank).sort("slice").unique("external_id", keep="first")
        shapes = own.select("external_id", operator_shapes="input_shapes", operator_types="input_types")
        joined = rows.filter(pl.col("rank") == rank).join(shapes, on="external_id", how="left")
        without = pl.col("input_shapes").is_not_null()
        parts.append(_sums(joined.with_columns(pl.when(~without).then(pl.col(*_OPERATOR)))))
    sums = pl.concat(parts)
    of_class = ("rank", "kind", pl.coalesce("type", "name"), "core")
    few = pl.struct(_OPERATOR).n_unique().over(of_class) <= limits.operator_variants
    sums = sums.with_columns(pl.when(few).then(pl.col(*_OPERATOR)))
    return _as_classes(sums, "input_shapes", "input_types", *_OPERATOR, "grid", "bytes")


def _null(name: str) -> pl.Expr:
    return pl.lit(None, pl.String).alias(name)


def _sums(rows: pl.LazyFrame) -> pl.DataFrame:
    sums = rows.group_by(*_OF_KERNELS, *_OPERATOR).agg(
        calls=pl.len().cast(pl.Int64), total_ns=pl.col("duration_ns").sum()
    )
    return sums.collect(engine="streaming")


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
    sized = [pl.col(part).is_not_null() for part in parts if part in ("input_shapes", "operator_shapes", "bytes")]
    has_grid = pl.col("grid").is_not_null() if "grid" in parts else pl.lit(value=False)
    return sums.select(
        "rank",
        "kind",
        name=pl.coalesce("type", "name"),
        core="core",
        variant=pl.when(pl.any_horizontal(text.is_not_null() for text in texts)).then(variant),
        sized_by=pl.when(pl.any_horizontal(sized)).then(pl.lit("shapes")).when(has_grid).then(pl.lit("grid")),
        calls="calls",
        total_ns="total_ns",
    )
