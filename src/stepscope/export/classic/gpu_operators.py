"""`gpu_op_type_info`, `gpu_op_detail_info` and `gpu_activity_data`: what operators and kernels cost the device.

An operator's time is that of the device work that it launched itself, without its children's, so that shares add up.
Device work of an unknown operator counts under its own name.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.export.classic.operator_names import named_operators
from stepscope.export.formatting import csv_text, largest_first, ratio, us
from stepscope.export.rank_export import RankExport
from stepscope.tables.operators import PLACE

TYPE_HEADER = "op_type,type_occurrences,total_time(us),total_proportion,avg_time(us)"
DETAIL_HEADER = (
    "op_side,op_type,op_name,op_full_name,op_occurrences,op_total_time(us),op_avg_time(us),total_proportion,"
    "cuda_activity_cost_time(us),cuda_activity_call_count"
)
ACTIVITY_HEADER = (
    "name,type,op_full_name,stream_id,block_dim,grid_dim,occurrences,total_duration(us),avg_duration(us),"
    "max_duration(us),min_duration(us)"
)
CALLS = pl.coalesce("external_id", -1 - pl.col("kernel")).n_unique()
"""Calls of operators among kernels; a kernel of an unknown call counts as one."""
_LAUNCHES = {"memory": "cuMemcpyAsync"}


def write_gpu_operators(export: RankExport) -> None:
    """Sum up device work by operator and by kernel; nothing without a GPU."""
    if not export.on_gpu:
        return
    owned = owned_kernels(export)
    time = pl.col("duration_ns")
    sums = {"total": time.sum(), "count": pl.len(), "longest": time.max(), "shortest": time.min()}
    activity = largest_first(owned, "name", "full_name", "kind", "stream", "block", "grid", **sums)
    export.write(f"gpu_activity_data_{export.rank}.csv", csv_text(ACTIVITY_HEADER, _activity_rows(activity)))
    sums = {"total": time.sum(), "calls": CALLS, "kernels": pl.len()}
    details = largest_first(owned, "full_name", "op_type", "op_name", **sums)
    whole = int(details["total"].sum())
    detail_rows = [
        ("Device", kind, name, full, calls, us(total), us(total / calls), ratio(total, whole), us(total), kernels)
        for full, kind, name, total, calls, kernels in details.iter_rows()
    ]
    export.write(f"gpu_op_detail_info_{export.rank}.csv", csv_text(DETAIL_HEADER, detail_rows))
    types = largest_first(details.lazy(), "op_type", total=pl.col("total").sum(), calls=pl.col("calls").sum())
    type_rows = [
        (kind, calls, us(total), ratio(total, whole), us(total / calls)) for kind, total, calls in types.iter_rows()
    ]
    export.write(f"gpu_op_type_info_{export.rank}.csv", csv_text(TYPE_HEADER, type_rows))


def owned_kernels(export: RankExport) -> pl.LazyFrame:
    """Device work with the names (`op_type`, `op_name`, `full_name`) of the operator that launched it."""
    operators = (
        named_operators(export)
        .filter(pl.col("external_id").is_not_null())
        .select("external_id", "op_type", "op_name", "full_name")
        .unique("external_id", keep="first")
    )
    is_place = pl.col("name").str.contains(PLACE)  # MindSpore names kernels so
    own = pl.col("name").str.replace_all("/", "|", literal=True)
    last = pl.when(is_place).then(pl.col("name").str.split("/").list.last()).otherwise(own)
    place = pl.when(is_place).then("name").otherwise("Default/" + own)
    return (
        export.lazy("kernels")
        .join(operators, on="external_id", how="left", maintain_order="left")
        .with_columns(
            op_type=pl.col("op_type").fill_null(pl.coalesce("type", "name")),
            op_name=pl.col("op_name").fill_null(last),
            full_name=pl.col("full_name").fill_null(place),
        )
    )


def _activity_rows(activity: pl.DataFrame) -> Iterator[tuple[object, ...]]:
    for row in activity.iter_rows(named=True):
        call = "cuMemsetAsync" if "emset" in row["name"] else _LAUNCHES.get(row["kind"], "cuLaunchKernel")
        total, count = row["total"], row["count"]
        dims = (_dim(row["block"]), _dim(row["grid"]))
        times = (us(total), us(total / count), us(row["longest"]), us(row["shortest"]))
        yield (row["name"], call, row["full_name"], row["stream"] or 0, *dims, count, *times)


def _dim(text: str | None) -> str:
    """`256,1,1`, whatever brackets and blanks the source has around it."""
    return (text or "").strip("[]() ").replace(" ", "")
