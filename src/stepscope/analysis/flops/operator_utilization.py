"""How much of the device's peak each operator reaches."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.flops.model_flops import peak_of
from stepscope.analysis.methods.statistics import share_of
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column

COLUMNS = columns(
    "rank",
    meaning("name", "Type of the operator, else its name."),
    "data_type",
    meaning("count", "Calls with known FLOPs."),
    Column("flops", "float64", "FLOPs of all of them.", title="FLOPs", importance=62),
    meaning("total_ns", "Their time on the device (on the host if there is no device)."),
    meaning("flops_per_s", "FLOPs over this time."),
    Column("peak_flops_per_s", "float64", "Peak of the device for this data type; null if unknown.", title="peak rate"),
    Column("utilization_ratio", "float64", "Rate over the peak (MFU of the operator).", title="of peak", importance=64),
    meaning("share_ratio", "Share of all known FLOPs."),
    nulls="data_type flops_per_s peak_flops_per_s utilization_ratio",
    keep="name",
    titles={"flops_per_s": "rate", "share_ratio": "share of FLOPs"},
)


@analysis("rank", COLUMNS, together=True, passes=("peak_flops_per_s",))
def operator_utilization(operator_flops: pl.DataFrame, model_flops: pl.DataFrame) -> pl.DataFrame:
    """Divide the rate of each operator by the peak of the device: one row per operator and data type, most FLOPs first.

    The peak is the known one of the device for the operator's data type; one that is given or stated is for all types.
    """
    known = operator_flops.filter(pl.col("flops") > 0)
    sums = (
        known.group_by("rank", "data_type", name=pl.coalesce("type", "name"))
        .agg(
            pl.col("count", "total_ns").sum(),
            flops=(pl.col("flops") * pl.col("count")).sum(),
        )
        .join(model_flops.select("rank", "device_name", "peak_flops_per_s", "peak_by"), on="rank", how="left")
    )
    places = sums.select("device_name", "data_type", "peak_by", "peak_flops_per_s").rows()
    peaks = [peak_of(device, kind) if by in (None, "table") else peak for device, kind, by, peak in places]
    return (
        sums.with_columns(pl.Series("peak_flops_per_s", peaks, dtype=pl.Float64))
        .with_columns(
            flops_per_s=pl.when(pl.col("total_ns") > 0).then(pl.col("flops") / pl.col("total_ns") * 1e9),
            share_ratio=share_of(pl.col("flops"), "rank"),
        )
        .with_columns(utilization_ratio=pl.col("flops_per_s") / pl.col("peak_flops_per_s"))
        .select(column.name for column in COLUMNS)
        .sort("rank", -pl.col("flops"), "name", "data_type", nulls_last=True)
    )
