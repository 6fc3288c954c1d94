"""The rows of operator lists: totals stated by a source, or else single operators and kernels."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.statistics import first_label
from stepscope.tables import KERNELS, OPERATOR_TOTALS, RANKS
from stepscope.tables.base import with_schema
from stepscope.tables.operators import INSTANCE
from stepscope.tables.operators import PLACE as PLACE_IN_MODEL

UNITS = ("AI_CORE", "AI_CPU", "MEMORY", "GPU", "CUDA", "PYNATIVE", "HOST_CPU", "CPU")
"""The lists, see `operator_totals.unit`; `MEMORY` has the copies of an Ascend device."""

DEVICE_UNITS, HOST_UNITS = UNITS[:6], UNITS[6:]
"""If a source states one of these lists for a rank, none is built from its kernels, or from its operators."""

PLACE = (
    *("type", "name", "full_name", "framework_name", "subgraph", "graph", "core", "kind", "stream"),
    *("block_dim", "block", "grid"),
)
"""Columns that identify an operator with its shapes."""

SHAPES = ("inputs", "input_shapes", "input_types")

COLUMNS: dict[str, pl.DataType] = {
    "rank": pl.Int32(),
    "unit": pl.String(),
    **dict.fromkeys(PLACE, pl.String()),
    **{"graph": pl.Int64(), "stream": pl.Int32(), "block_dim": pl.Int64()},
    "count": pl.Int64(),
    **dict.fromkeys(("total_ns", "self_ns", "min_ns", "max_ns", "wait_ns", "activity_ns", "activities"), pl.Int64()),
    **dict.fromkeys(("cube_flops", "vector_flops"), pl.Float64()),
    "process": pl.Int64(),
    **dict.fromkeys(SHAPES, pl.String()),
}
"""Columns of every row; null if a list does not have them."""

_TEMPLATE = r"^(?:void |static void )?([^<(]+).*$"
"""A kernel's name without return type, template and arguments."""


def stated_rows(totals: pl.LazyFrame | None) -> pl.DataFrame:
    """The operators of the lists that a source states (`operator_totals`): rows of `COLUMNS`."""
    is_ours = pl.col("unit").is_in(UNITS) & pl.col("level").is_in(["operator", "activity"])
    return with_schema(OPERATOR_TOTALS.or_empty(totals).filter(is_ours).collect(), COLUMNS)


def kernel_rows(kernels: pl.LazyFrame, ranks: pl.LazyFrame | None) -> pl.LazyFrame:
    """Kernels as operators: those of an Ascend device by core, its copies as `MEMORY`, those of a GPU as `CUDA`.

    A kernel without a type gets its function name without template and arguments, or the type at the end of its
    position in the model.
    """
    kinds = RANKS.or_empty(ranks).select("rank", is_npu=pl.col("device_kind") == "npu").unique("rank")
    rows = kernels.join(kinds, on="rank", how="left").with_columns(
        npu=pl.col("core").is_not_null() | pl.col("is_npu").fill_null(False)
    )
    is_copy = pl.col("npu") & (pl.col("kind") == "memory")
    units = {"AI_CPU": pl.col("core") == "AI_CPU", "MEMORY": is_copy, "AI_CORE": pl.col("npu")}
    bare = pl.col("name").str.replace_all("(anonymous namespace)::", "", literal=True).str.replace(_TEMPLATE, "$1")
    kind = pl.when(_is_place("name")).then(short("name").str.replace(INSTANCE, "")).otherwise(bare)
    return rows.with_columns(
        unit=first_label(units, otherwise="CUDA"),
        type=pl.coalesce("type", kind),
        name=short("name"),
        full_name=full("name"),
        **dict.fromkeys(("self_ns", "activity_ns", "activities"), pl.lit(None, pl.Int64)),
    )


def named_operators(operators: pl.LazyFrame, kernels: pl.LazyFrame | None) -> pl.LazyFrame:
    """Host operators with the list to which they belong and their short names; `kernels` show who has a device."""
    on_host = KERNELS.or_empty(kernels).select("rank").unique().with_columns(unit=pl.lit("HOST_CPU"))
    return operators.join(on_host, on="rank", how="left").with_columns(
        pl.col("unit").fill_null("CPU"),
        type=pl.coalesce("type", short("name").str.replace(INSTANCE, "")),
        name=short("name"),
        full_name=full("name"),
        wait_ns=pl.lit(None, pl.Int64),
    )


def short(name: str) -> pl.Expr:
    """The last part of an operator's position in the model; other names are unchanged."""
    return pl.when(_is_place(name)).then(pl.col(name).str.split("/").list.last()).otherwise(pl.col(name))


def full(name: str) -> pl.Expr:
    """An operator's position in the model; null if its name is not a position."""
    return pl.when(_is_place(name)).then(name)


def _is_place(name: str) -> pl.Expr:
    return pl.col(name).str.contains(PLACE_IN_MODEL)
