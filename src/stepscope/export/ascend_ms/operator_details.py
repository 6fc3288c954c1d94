"""operator_details.csv: every call of an operator with its shapes, its stack, and its time on host and device."""

from __future__ import annotations

import polars as pl

from stepscope.errors import Unavailable
from stepscope.export.ascend_ms.units import csv_text, microseconds
from stepscope.export.rank_export import RankExport


def operator_details(export: RankExport) -> str:
    """The file. Time on the device is the kernels that an operator (total: or one inside it) launched; 0 on a host.

    The columns `With AICore` hold the part of it that ran on cube cores, and are 0 for other kernels.

    Raises:
        Unavailable: If no operators, or no shapes, were recorded.
    """
    operators = export.rows("operators")
    if operators.is_empty():
        raise Unavailable(export.run.missing("operators") or "no operators in the wanted steps")
    if operators["input_shapes"].is_null().all():
        raise Unavailable("no shapes were recorded; record with record_shapes=True")
    rows = _with_device_time(operators, export.rows("kernels")).join(
        export.rows("stacks").select("stack", "text"), on="stack", how="left", maintain_order="left"
    )
    return csv_text(
        rows.select(
            pl.col("name").alias("Name"),
            pl.col("input_shapes").alias("Input Shapes"),
            pl.col("text").str.replace_all("\n", ";\r\n", literal=True).alias("Call Stack"),
            microseconds(pl.coalesce("self_ns", "duration_ns")).alias("Host Self Duration(us)"),
            microseconds("duration_ns").alias("Host Total Duration(us)"),
            *(
                microseconds(f"{whose}_{what}_ns").alias(f"Device {whose.title()} Duration{title}(us)")
                for what, title in (("device", ""), ("cube", " With AICore"))
                for whose in ("self", "total")
            ),
        )
    )


CUBE_CORES = ("AI_CORE", "MIX_AIC")


def _with_device_time(operators: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    """Operators in order of start, with `self_device_ns`, `total_device_ns` and the same for cube cores."""
    cube = pl.col("duration_ns").filter(pl.col("core").is_in(CUBE_CORES)).sum()
    launched = (
        kernels.filter(pl.col("external_id").is_not_null())
        .group_by("external_id")
        .agg(self_device_ns=pl.sum("duration_ns"), self_cube_ns=cube)
    )
    rows = operators.join(launched, on="external_id", how="left").with_columns(
        pl.col("self_device_ns", "self_cube_ns").fill_null(0)
    )
    threads = rows.sort("start_ns", "duration_ns", descending=[False, True]).partition_by("thread", maintain_order=True)
    return pl.concat([_with_totals(thread) for thread in threads]).sort("start_ns", maintain_order=True)


def _with_totals(thread: pl.DataFrame) -> pl.DataFrame:
    """Operators of one thread, outer before inner: those inside one follow it and start before it ends."""
    ends = thread["start_ns"] + thread["duration_ns"]
    after = thread["start_ns"].search_sorted(ends, side="left").cast(pl.Int64)
    after = pl.select(pl.max_horizontal(after, pl.int_range(1, thread.height + 1, dtype=pl.Int64))).to_series()
    totals = []
    for what in ("device", "cube"):
        upto = pl.concat([pl.Series([0], dtype=pl.Int64), thread[f"self_{what}_ns"].cast(pl.Int64).cum_sum()])
        totals.append((upto.gather(after) - upto.head(thread.height)).alias(f"total_{what}_ns"))
    return thread.with_columns(totals)
