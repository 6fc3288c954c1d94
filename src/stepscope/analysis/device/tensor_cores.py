"""Which products of matrices, convolutions and attention kernels run on tensor cores, and which do not and why."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.code_places import places
from stepscope.analysis.methods.launch_owners import owners
from stepscope.analysis.methods.matrix_units import (
    PLAIN,
    UNKNOWN,
    WITH_TENSOR_CORES,
    WITH_TF32,
    generation_of,
    is_tf32,
    least_multiple,
    precision_in,
    unit_of,
)
from stepscope.analysis.methods.statistics import first_label
from stepscope.analysis.registry import analysis
from stepscope.tables import OPERATORS
from stepscope.tables.base import Column, schema_of

NO_MATRICES = "no kernel whose name says that it multiplies matrices was recorded on a CUDA or ROCm device"

TOO_OLD, TF32, UNALIGNED, OTHER = "single precision", "single precision without TF32", "sizes", "other"
REASONS = (TOO_OLD, TF32, UNALIGNED, OTHER)
"""Why a kernel runs beside the tensor cores."""

ALIGNED = 8
"""Sizes in half precision that are multiples of this run on tensor cores with every version of the libraries; in TF32,
those that are multiples of half of it: 16 bytes, as NVIDIA's guide to matrix products says."""

COLUMNS = columns(
    "rank",
    Column("unit", "string", "Where it runs.", values=("tensor", PLAIN, UNKNOWN), importance=64),
    Column(
        "reason",
        "string",
        "Why not on tensor cores: `single precision` (of a device that takes none there), `single precision without "
        "TF32`, `sizes` that are no multiples of 8 (of 4 in TF32), or `other`; null if it does, or if that is unknown.",
        values=REASONS,
        importance=63,
    ),
    meaning("name", "Name of the kernel."),
    Column("operator", "string", "Operator that launched it; null if not known."),
    Column("data_types", "string", "Data types of the operator's inputs; null if not recorded.", importance=50),
    Column("shapes", "string", "Shapes of the operator's inputs; null if not recorded.", importance=49),
    Column("divisor", "int64", "Greatest power of two, up to 16, that divides the sizes; null if unknown."),
    meaning("count", "Number of kernels."),
    meaning("total_ns", "Their time."),
    Column("share_ratio", "float64", "Share of the time of all kernels that compute.", title="share", importance=60),
    Column("code", "string", "Line of code that calls the operator; null if no stacks were recorded.", importance=40),
    Column("generation", "int32", "Ten times the compute capability of the device; null if unknown.", importance=10),
    nulls="reason operator data_types shapes divisor code generation",
    keep="name",
)


@analysis("rank", COLUMNS, together=True, nothing=NO_MATRICES)
def tensor_cores(
    kernels: pl.LazyFrame,
    ranks: pl.LazyFrame,
    operators: pl.LazyFrame | None,
    slices: pl.LazyFrame | None,
    stacks: pl.LazyFrame | None,
) -> pl.DataFrame:
    """Sum up kernels that multiply matrices by what they run on: one row per kernel and operator with its shapes, the
    longest first.

    Names say it (`volta_sgemm_128x32_nn`: no; `ampere_fp16_s16816gemm`: yes). Kernels whose names do not are `unknown`.
    Double precision and helpers are left out. TF32 is switched on for products and convolutions apart.
    """
    devices = ranks.filter(pl.col("device_kind").is_in(["cuda", "rocm"])).select("rank", "device_name", "device_kind")
    known = devices.collect()
    if known.is_empty():  # spares reading the kernels of other devices
        return pl.DataFrame(schema=schema_of(COLUMNS))
    computing = kernels.filter((pl.col("kind") == "compute") & pl.col("rank").is_in(known["rank"].to_list()))
    names = computing.select("name").unique().collect(engine="streaming").with_columns(
        unit=unit_of(), precision=precision_in()
    ).drop_nulls("unit")  # fmt: skip
    if names.is_empty():
        return pl.DataFrame(schema=schema_of(COLUMNS))
    total = computing.group_by("rank").agg(every_ns=pl.col("duration_ns").sum()).collect(engine="streaming")
    named = computing.join(names.lazy(), on="name")
    called = _called(named, operators, slices)
    rows = (
        named.select("rank", "kernel", "name", "unit", "precision", "duration_ns")
        .join(called.lazy(), on=["rank", "kernel"], how="left")
        .collect(engine="streaming")
    )
    keys = ["rank", "unit", "name", "precision", "operator", "data_types", "shapes"]
    sums = rows.group_by(keys).agg(
        count=pl.len().cast(pl.Int64), total_ns=pl.col("duration_ns").sum(), slice=pl.col("slice").min()
    )
    found = sums.join(_generations(known, rows), on="rank", how="left").join(total, on="rank")
    divided = _divided(found).with_columns(
        takes_tf32=(pl.col("unit") == "tensor") & (pl.col("precision") != "half").fill_null(True) & is_tf32(),
        is_convolution=pl.coalesce("operator", "name").str.contains(r"(?i)conv|cudnn|[dw]grad|fprop"),
    )
    return (
        divided.with_columns(pl.col("takes_tf32").any().over("rank", "is_convolution"))
        .with_columns(
            reason=_reason(),
            share_ratio=pl.when(pl.col("every_ns") > 0).then(pl.col("total_ns") / pl.col("every_ns")).otherwise(0.0),
        )
        .filter(~pl.col("is_double"))
        .join(places(divided.select("rank", "slice"), operators, stacks, slices), on=["rank", "slice"], how="left")
        .sort("rank", -pl.col("total_ns"), "name", "operator", "data_types", "shapes", nulls_last=True)
        .select(column.name for column in COLUMNS)
    )


def _called(kernels: pl.LazyFrame, operators: pl.LazyFrame | None, slices: pl.LazyFrame | None) -> pl.DataFrame:
    """The operators that launched some kernels: `rank`, `kernel`, `slice`, `operator`, `data_types`, `shapes`."""
    calls = OPERATORS.or_empty(operators).select(
        "rank", "slice", operator="name", data_types="input_types", shapes="input_shapes"
    )
    if operators is None:
        return calls.with_columns(kernel=pl.lit(None, pl.Int64)).collect()
    owned = owners(kernels, operators, slices).drop_nulls("slice")
    found = owned.lazy().join(calls, on=["rank", "slice"]).collect()
    return found.unique(["rank", "kernel"], keep="first", maintain_order=True)


def _generations(devices: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """The generation of each rank's device; those of ROCm have none."""
    kernels = {rank: own["name"].unique().to_list() for (rank,), own in rows.partition_by("rank", as_dict=True).items()}
    found = [
        (rank, None if kind == "rocm" else generation_of(device, kernels.get(rank, [])))
        for rank, device, kind in devices.iter_rows()
    ]
    return pl.DataFrame(found, schema={"rank": pl.Int32, "generation": pl.Int32}, orient="row")


def _divided(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with their `divisor` and whether they are of double precision, which no reason explains."""
    asked = rows.select("operator", "shapes").unique()
    divisor = [least_multiple(operator, shapes) for operator, shapes in asked.iter_rows()]
    known = asked.with_columns(pl.Series("divisor", divisor, dtype=pl.Int64))
    kinds = pl.col("data_types").str.to_lowercase()
    of_inputs = first_label({"double": kinds.str.contains("double|float64|complex"),
                             "half": kinds.str.contains("half|float16"),
                             "single": kinds.str.contains("float")})  # fmt: skip
    return (
        rows.join(known, on=["operator", "shapes"], how="left", nulls_equal=True)
        .with_columns(precision=pl.coalesce(of_inputs, "precision"))
        .with_columns(is_double=(pl.col("precision") == "double").fill_null(False))
    )


def _reason() -> pl.Expr:
    """Why a kernel does not run on tensor cores; null if it does, if its device has none, or if it is unknown."""
    generation = pl.col("generation").fill_null(0)
    plain = (pl.col("unit") == PLAIN) & (generation >= WITH_TENSOR_CORES)
    single = pl.col("precision") == "single"
    cases = {
        TOO_OLD: plain & single & (generation < WITH_TF32),
        TF32: plain & single & ~pl.col("takes_tf32"),
        UNALIGNED: plain & (pl.col("divisor") < pl.when(single).then(ALIGNED // 2).otherwise(ALIGNED)),
        OTHER: plain,
    }
    return first_label(cases)
