"""How much operators compute for each byte that they move, as far as hardware counters tell."""

from __future__ import annotations

import re

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.registry import analysis, without_rows
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

NEITHER = "the recorded counters do not have both operations and bytes of main memory"

_CUPTI = re.compile(r"^smsp__sass_thread_inst_executed_op_[fhd](add|mul|fma)_pred_on\.sum$")
_FOPS = re.compile(r"^(aic_|aiv_)?(cube|vector)_fops$")
_BYTES = re.compile(r"^(aic_|aiv_)?(read|write)_main_memory_bytes$|^dram__bytes_(read|write)\.sum$")
TENSOR = "sm__inst_executed_pipe_tensor.sum"
"""Instructions of tensor cores, whose operations are unknown."""

_COLUMNS = columns(
    "rank",
    Column("operator", "string", "Operator that launches the kernels; null if not known."),
    Column("name", "string", "Name of the kernel; null if not recorded.", importance=61),
    Column("count", "int64", "Kernels.", importance=50),
    Column(
        "counted_flops", "float64", "Operations that the device counted; null where tensor cores ran.", importance=57
    ),
    Column("moved_bytes", "float64", "Bytes read from and written to main memory.", importance=56),
    Column("flops_per_byte", "float64", "Operations for each byte: low means bound by memory.", importance=60),
    Column("kernel_ns", "int64", "Time of the kernels; null if unknown.", importance=55),
    Column("flops_per_s", "float64", "Operations over time; null if unknown.", importance=59),
    Column("moved_bytes_per_s", "float64", "Bytes over time; null if unknown.", importance=58),
    nulls="operator name counted_flops flops_per_byte kernel_ns flops_per_s moved_bytes_per_s",
    keep="operator",
)


@analysis("rank", _COLUMNS, together=True, passes=("outer",))
def roofline(operator_counters: pl.DataFrame) -> pl.DataFrame:
    """Find operations and bytes by operator and kernel, most bytes first.

    Raises:
        Unavailable: If the counters of a rank do not have both.
    """
    names = operator_counters["counter"].unique().to_list()
    fused = [name for name in names if (match := _CUPTI.match(name)) and match[1] == "fma"]
    single = [name for name in names if _FOPS.match(name) or ((match := _CUPTI.match(name)) and match[1] != "fma")]
    counter, total = pl.col("counter"), pl.col("total")
    flops = counter.is_in([*fused, *single])
    moved = counter.is_in([name for name in names if _BYTES.match(name)])
    tensor = total.filter(counter == TENSOR).sum()
    sums = operator_counters.group_by("rank", "operator", "name").agg(
        count=pl.col("count").max(),
        counted_flops=pl.when(tensor > 0).then(None).otherwise(
            total.filter(flops).sum() + total.filter(counter.is_in(fused)).sum()
        ),
        moved_bytes=total.filter(moved).sum(),
        both=(flops & total.is_not_null()).any() & (moved & total.is_not_null()).any(),
        kernel_ns=pl.col("kernel_ns").max(),
    )  # fmt: skip
    found = sums.filter("both").drop("both")
    if lacking := without_rows(operator_counters["rank"].unique().sort(), found):
        raise Unavailable(NEITHER, of=lacking)
    per_ns = pl.when(pl.col("kernel_ns") > 0).then(1e9 / pl.col("kernel_ns"))
    return (
        found.with_columns(
            flops_per_byte=pl.when(pl.col("moved_bytes") > 0).then(pl.col("counted_flops") / pl.col("moved_bytes")),
            flops_per_s=pl.col("counted_flops") * per_ns,
            moved_bytes_per_s=pl.col("moved_bytes") * per_ns,
        )
        .select(column.name for column in _COLUMNS)
        .sort("rank", -pl.col("moved_bytes"), "operator", "name", nulls_last=True)
    )
