"""kernel_details.csv, op_statistic.csv and api_statistic.csv: device work one by one, and totals.

`Accelerator Core` and `Core Type` are the unit as recorded (`AI_CORE`), else the kind of device (`CUDA`). On a host
alone there are no kernels: op_statistic.csv then sums up its operators, by self time, with the core `CPU`.
"""

from __future__ import annotations

import polars as pl

from stepscope.errors import Unavailable
from stepscope.export.ascend_ms.calls import named_calls
from stepscope.export.ascend_ms.identity import on_device
from stepscope.export.ascend_ms.units import csv_text, has_steps, instants, microseconds
from stepscope.export.rank_export import RankExport

CALL_CORE = "COMMUNICATION"
"""Core of rows that are communication calls."""
_SHAPES = {
    "Input Shapes": "input_shapes",
    "Input Data Types": "input_types",
    "Input Formats": "input_formats",
    "Output Shapes": "output_shapes",
    "Output Data Types": "output_types",
    "Output Formats": "output_formats",
}


def kernel_details(export: RankExport) -> str:
    """Compute kernels and communication calls of the device, in order of start.

    Raises:
        Unavailable: If nothing ran on a device.
    """
    calls = named_calls(export).filter("on_device")
    rows = pl.concat([_compute(export), _calls(calls)], how="diagonal")
    if rows.is_empty():
        raise Unavailable(export.run.missing("kernels") or "no kernels in the wanted steps")
    step = pl.col("step") if has_steps(export) else pl.lit(None, pl.Int32)
    rows = rows.sort("start_ns").select(
        step.alias("Step Id"),
        pl.col("device").alias("Device_id"),
        pl.col("stream").alias("Stream ID"),
        pl.col("name").alias("Name"),
        pl.col("type").alias("Type"),
        pl.col("state").alias("OP State"),
        pl.col("core").alias("Accelerator Core"),
        instants("start_ns").alias("Start Time(us)"),
        microseconds("duration_ns").alias("Duration(us)"),
        microseconds("wait_ns").alias("Wait Time(us)"),
        pl.col("block_dim").alias("Block Dim"),
        pl.col("mix_block_dim").alias("Mix Block Dim"),
        *(pl.col(name).alias(title) for title, name in _SHAPES.items()),
    )
    return csv_text(rows, missing="N/A")


def op_statistic(export: RankExport) -> str:
    """Totals of device work by type if the source states one, else by name; on a host, of operators.

    Raises:
        Unavailable: If there is neither.
    """
    if on_device(export):
        work = _compute(export).select(pl.coalesce("type", "name").alias("type"), "core", "duration_ns")
    else:
        spent = pl.coalesce("self_ns", "duration_ns").alias("duration_ns")
        work = export.rows("operators").select(pl.col("name").alias("type"), pl.lit("CPU").alias("core"), spent)
    if work.is_empty():
        raise Unavailable("neither kernels nor operators were recorded")
    totals = _totals(work, ["type", "core"])
    ratio = 100 * pl.col("total_ns") / pl.col("total_ns").sum()
    return csv_text(
        totals.select(
            pl.lit(export.facts.get("device")).alias("Device_id"),
            pl.col("type").alias("OP Type"),
            pl.col("core").alias("Core Type"),
            pl.col("count").alias("Count"),
            microseconds("total_ns").alias("Total Time(us)"),
            microseconds("min_ns").alias("Min Time(us)"),
            (pl.col("mean_ns") / 1000).round(3).alias("Avg Time(us)"),
            microseconds("max_ns").alias("Max Time(us)"),
            ratio.round(3).alias("Ratio(%)"),
        )
    )


def api_statistic(export: RankExport) -> str:
    """Totals of the calls into the driver and its runtime.

    Raises:
        Unavailable: If none were recorded, as on a host alone.
    """
    calls = export.rows("slices").filter(pl.col("category") == "runtime")
    if calls.is_empty():
        raise Unavailable("no calls into a device's runtime were recorded")
    return csv_text(
        _totals(calls, ["name"]).select(
            pl.lit("host").alias("Device_id"),
            pl.lit("runtime").alias("Level"),
            pl.col("name").alias("API Name"),
            microseconds("total_ns").alias("Time(us)"),
            pl.col("count").alias("Count"),
            (pl.col("mean_ns") / 1000).round(3).alias("Avg(us)"),
            microseconds("min_ns").alias("Min(us)"),
            microseconds("max_ns").alias("Max(us)"),
            (pl.col("variance") / 1e6).round(3).alias("Variance"),
        )
    )


def _compute(export: RankExport) -> pl.DataFrame:
    kind = str(export.facts.get("device_kind") or "device").upper()
    rows = export.rows("kernels").filter(pl.col("kind") == "compute")
    return rows.with_columns(pl.col("core").fill_null(kind))


def _calls(calls: pl.DataFrame) -> pl.DataFrame:
    return calls.select(
        "start_ns",
        "duration_ns",
        "wait_ns",
        "stream",
        "step",
        name="call",
        type=pl.format("hcom_{}_", "word"),
        core=pl.lit(CALL_CORE),
    )


def _totals(rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Sums of `duration_ns`, largest first."""
    duration = pl.col("duration_ns")
    return (
        rows.group_by(by)
        .agg(
            count=pl.len(),
            total_ns=duration.sum(),
            min_ns=duration.min(),
            mean_ns=duration.mean(),
            max_ns=duration.max(),
            variance=duration.cast(pl.Float64).var(ddof=0),
        )
        .sort("total_ns", *by, descending=[True, *(False for _ in by)])
    )
