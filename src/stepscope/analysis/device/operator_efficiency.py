"""How well matrix products, fused attention and vector operators use the cores of an Ascend device."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.device.operator_work import COLUMNS as WORK
from stepscope.analysis.device.operator_work import KEYS
from stepscope.analysis.methods.shapes import Shapes, tensors
from stepscope.analysis.methods.work_classes import work_class
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column

CUBE, ATTENTION, VECTOR = "cube", "attention", "vector"
UNITS = (CUBE, ATTENTION, VECTOR)

NO_OPERATORS = "no matrix products, fused attention or vector operators of a device with AI cores were recorded"


@dataclass(frozen=True)
class Limits:
    """What good use of the cores is."""

    inner_axis: int = limit(256, "elements, of which inner axes should be multiples", "the Ascend advisor's limit")
    head_axis: int = limit(
        128, "elements, of which head and sequence should be multiples", "the Ascend advisor's limit"
    )
    least_bytes: int = limit(100_000_000, "bytes of all calls with these shapes", "the Ascend advisor's limit")
    cube_mac_ratio: float = limit(0.8, "of the time, matrix unit busy", "the Ascend advisor's limit")
    cube_mte2_ratio: float = limit(0.95, "of the time, moves into the core busy", "the Ascend advisor's limit")
    attention_mte2_ratio: float = limit(0.8, "of the time, moves into the core busy", "the Ascend advisor's limit")
    attention_fixpipe_ratio: float = limit(0.75, "of the time, moves of results busy", "the Ascend advisor's limit")
    attention_vec_ratio: float = limit(0.75, "of the time, vector unit busy", "the Ascend advisor's limit")
    attention_mac_ratio: float = limit(0.8, "of the time, matrix unit busy", "as of matrix products")
    vector_ratio: float = limit(0.7, "of the time, one of its pipes busy", "the Ascend advisor's limit")
    vector_sum_ratio: float = limit(0.9, "of the time, sum of its pipes", "the Ascend advisor's limit")
    vector_share_ratio: float = limit(0.01, "of the time of vector operators, of a type", "the Ascend advisor's limit")
    vector_ns: int = limit(1_000_000_000, "ns of a type, whatever its share", "the Ascend advisor's limit")


LIMITS = Limits()

COLUMNS = (
    *WORK,
    *columns(
        Column("unit", "string", "Kind of operator.", values=UNITS),
        Column(
            "unaligned",
            "list[int64]",
            "Sizes that are no multiple of `multiple`: inner axes of matrices, head and sequence of attention; null if "
            "shapes do not show them.",
        ),
        Column(
            "multiple", "int64", "What these sizes should be multiples of; null for vector operators.", importance=15
        ),
        Column("bound", "bool", "True if a pipe is as busy as it can be; null without counters.", title="limited"),
        Column(
            "space_ratio",
            "float64",
            "Share of its time that it would save at most, were the pipe nearest to its limit there; null without "
            "counters.",
            title="space",
        ),
        Column("space_ns", "int64", "This share of its time.", title="at most"),
        nulls="unaligned multiple bound space_ratio space_ns",
    ),
)

_SIZES = {
    **dict.fromkeys(("BF16", "FLOAT16", "FP16", "HALF", "INT16", "UINT16", "BFLOAT16"), 2),
    **dict.fromkeys(("FLOAT", "FLOAT32", "FP32", "INT32", "UINT32", "HIFLOAT32"), 4),
    **dict.fromkeys(("INT8", "UINT8", "BOOL", "FLOAT8_E4M3FN", "FLOAT8_E5M2", "HIFLOAT8"), 1),
    **dict.fromkeys(("DOUBLE", "FLOAT64", "INT64", "UINT64", "COMPLEX64"), 8),
}


@analysis("rank", COLUMNS, together=True, nothing=NO_OPERATORS)
def operator_efficiency(operator_work: pl.DataFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Judge matrix products, attention and vector operators by shapes and the counters of their pipes, longest first.

    Matrix products count from a number of bytes on, vector operators by the time of their type. Without counters, only
    shapes are judged.
    """
    work = work_class(pl.coalesce("type", "name"), pl.col("core"))
    core = pl.col("core").fill_null("")
    unit = (
        pl.when(core.is_in(["AI_CORE", "MIX_AIC", "MIX_AIV"]) & (work == ATTENTION))
        .then(pl.lit(ATTENTION))
        .when(core.is_in(["AI_CORE", "MIX_AIC"]) & (work == "matmul"))
        .then(pl.lit(CUBE))
        .when(core.is_in(["AI_VECTOR_CORE", "MIX_AIV"]) & (work != ATTENTION))
        .then(pl.lit(VECTOR))
    )
    rows = operator_work.with_columns(unit=unit).drop_nulls("unit")
    of_type = pl.col("total_ns").sum().over("rank", "unit", pl.coalesce("type", "name"))
    share = of_type / pl.col("total_ns").sum().over("rank", "unit")
    counts = (
        pl.when(pl.col("unit") == VECTOR)
        .then((share >= limits.vector_share_ratio) | (of_type >= limits.vector_ns))
        .otherwise(pl.lit(value=True))
    )
    rows = rows.filter(counts)
    looked = pl.DataFrame(
        [_looked_at(row, limits) for row in rows.iter_rows(named=True)],
        schema={"unaligned": pl.List(pl.Int64), "bytes": pl.Int64, "multiple": pl.Int64},
    )
    near = _nearness(limits)
    large = (pl.col("unit") != CUBE) | pl.col("bytes").is_null() | (pl.col("bytes") >= limits.least_bytes)
    return (
        rows.hstack(looked)
        .filter(large)
        .with_columns(bound=near >= 1, space_ratio=(1 - near).clip(lower_bound=0.0))
        .with_columns(space_ns=(pl.col("total_ns") * pl.col("space_ratio")).round().cast(pl.Int64))
        .select(names(COLUMNS))
    )


def decided(efficiency: pl.DataFrame) -> pl.DataFrame:
    """What identifies the operators (`KEYS`) of which `operator_efficiency` says whether they could be faster: those of
    vector operators that could not be may still be limited by no single pipe."""
    return efficiency.filter((pl.col("unit") != VECTOR) | (pl.col("space_ns") > 0)).select(KEYS)


def _nearness(limits: Limits) -> pl.Expr:
    """How near the nearest pipe is to its limit, 1 if it is there; null without counters."""
    mac, vec, mte2, mte3, fixpipe = (
        pl.col(f"{pipe}_ratio").fill_null(0.0) for pipe in ("mac", "vec", "mte2", "mte3", "fixpipe")
    )
    unit = pl.col("unit")
    nearest = (
        pl.when(unit == CUBE)
        .then(pl.max_horizontal(mac / limits.cube_mac_ratio, mte2 / limits.cube_mte2_ratio))
        .when(unit == ATTENTION)
        .then(
            pl.max_horizontal(
                mac / limits.attention_mac_ratio,
                vec / limits.attention_vec_ratio,
                mte2 / limits.attention_mte2_ratio,
                fixpipe / limits.attention_fixpipe_ratio,
            )
        )
        .otherwise(
            pl.max_horizontal(
                *(pipe / limits.vector_ratio for pipe in (vec, mte2, mte3)),
                (vec + mte2 + mte3) / limits.vector_sum_ratio,
            )
        )
    )
    return pl.when(pl.col("counted") > 0).then(nearest)


def _looked_at(row: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """What the shapes of an operator show: sizes that are not aligned, and the bytes of all of its calls."""
    inputs, outputs = tensors(row["input_shapes"]), tensors(row["output_shapes"])
    if row["unit"] == VECTOR:
        return {"unaligned": None, "bytes": None, "multiple": None}
    if row["unit"] == CUBE:
        known = [shape[-1] for shape in inputs[:2] if len(shape) > 1]
        multiple, size = limits.inner_axis, _bytes(inputs, row["input_types"]) + _bytes(outputs, row["input_types"])
        whole = size * row["count"] if known else None
    else:
        known, multiple, whole = _of_attention(inputs, outputs), limits.head_axis, None
    odd = sorted({size for size in known if size % multiple}) if known else None
    return {"unaligned": odd, "bytes": whole, "multiple": multiple}


def _of_attention(inputs: Shapes, outputs: Shapes) -> list[int]:
    """Head size and length of the sequence, as far as the shapes show them; the statistics of the softmax, (batch,
    heads, sequence, 8), show how the sizes of a query are to be read."""
    query = inputs[0] if inputs else []
    sums = next((shape for shape in [*outputs, *inputs] if len(shape) == 4 and shape[-1] == 8), None)
    if len(query) == 4:
        return [query[-1], *([sums[2]] if sums else [])]
    if len(query) == 3 and sums and sums[1] and query[-1] % sums[1] == 0:
        return [query[-1] // sums[1], sums[2]]
    return []


def _bytes(shapes: Shapes, types: str | None) -> int:
    """Bytes of tensors; those of an unknown type count as two bytes an element, as in training."""
    named = [one.strip().removeprefix("DT_").upper() for one in (types or "").strip('"').split(";")]
    sizes = [_SIZES.get(one, 2) for one in named] or [2]
    return sum(prod(shape) * sizes[min(place, len(sizes) - 1)] for place, shape in enumerate(shapes) if shape)
