"""CSV files of where time went: step_trace_time, operator_details, kernel_details, op_statistic and api_statistic.

`Accelerator Core` and `Core Type` are the unit as recorded (`AI_CORE`), else the kind of device (`CUDA`). On a host
alone there are no kernels: op_statistic.csv then sums up its operators, by self time, with the core `CPU`.
"""

from __future__ import annotations

import polars as pl

from stepscope.errors import Unavailable
from stepscope.export.ascend_ms.communication import named_calls
from stepscope.export.formatting import instants, largest_first, microseconds
from stepscope.export.rank_export import RankExport
from stepscope.sources.ascend.kernel_tables import API_LEVELS
from stepscope.sources.ascend.pmu import recorded_counter
from stepscope.tables.steps import WHOLE_RECORDING
from stepscope.text_columns import filled_in

_STEP_COLUMNS = {
    "Computing": "computing_ns",
    "Communication(Not Overlapped)": "communication_not_overlapped_ns",
    "Overlapped": "overlapped_ns",
    "Communication": "communication_ns",
    "Free": "free_ns",
    "Stage": "stage_ns",
    "Bubble": "bubble_ns",
    "Communication(Not Overlapped and Exclude Receive)": "communication_not_overlapped_exclude_receive_ns",
}
"""Header to column of `breakdown`."""
_UNITS = ("AI_CORE", "GPU", "CUDA", "CPU", "PYNATIVE")
"""Lists of `operator_totals.unit`, the first that has rows counts."""
CUBE_CORES = ("AI_CORE", "MIX_AIC")


def step_trace_time(export: RankExport) -> str:
    """The file, in microseconds, from our own breakdown; the format's `Free` contains memory operations.

    `Preparing` is left out if no step has it: it ends with a step's first device task, which a host does not have.
    """
    parts: pl.DataFrame = export.run.analyse("breakdown")
    rows = parts.with_columns(free_ns=pl.col("free_ns") + pl.col("memory_not_overlapped_ns"))
    step = pl.when(pl.col("window") != WHOLE_RECORDING).then(pl.col("step").cast(pl.String))
    columns = _STEP_COLUMNS if rows["preparing_ns"].is_null().all() else {**_STEP_COLUMNS, "Preparing": "preparing_ns"}
    return rows.select(step.alias("Step"), *(microseconds(c).alias(title) for title, c in columns.items())).write_csv()


def operator_details(export: RankExport) -> str:
    """The file. Time on the device is the kernels that an operator (total: or one inside it) launched; 0 on a host.

    The columns `With AICore` hold the part of it that ran on cube cores, and are 0 for other kernels.
    """
    operators = export.rows("operators")
    if operators.is_empty():
        raise Unavailable(export.run.missing("operators") or "no operators in the wanted steps")
    if operators["input_shapes"].is_null().all():
        raise Unavailable("no shapes were recorded; record with record_shapes=True")
    rows = _with_device_time(operators, export.rows("kernels")).join(
        export.rows("stacks").select("stack", "text"), on="stack", how="left", maintain_order="left"
    )
    return rows.select(
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
    ).write_csv()


def _with_device_time(operators: pl.DataFrame, kernels: pl.DataFrame) -> pl.DataFrame:
    """Operators in order of start, with `self_device_ns`, `total_device_ns` and the same for cube cores."""
    cube = pl.col("duration_ns").filter(pl.col("core").is_in(CUBE_CORES)).sum()
    launched = (
        kernels.filter(pl.col("external_id").is_not_null())
        .group_by("external_id")
        .agg(self_device_ns=pl.sum("duration_ns"), self_cube_ns=cube)
    )
    rows = operators.join(launched, on="external_id", how="left", maintain_order="left").with_columns(
        pl.col("self_device_ns", "self_cube_ns").fill_null(0)
    )
    outer_first = rows.sort("start_ns", "duration_ns", descending=[False, True], maintain_order=True)
    threads = outer_first.partition_by("thread", maintain_order=True)
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


def kernel_details(export: RankExport) -> str:
    """Compute kernels and communication calls of the device, in order of start."""
    names = {"name": pl.col("call"), "type": filled_in("hcom_{}_", "word"), "core": pl.lit("COMMUNICATION")}
    calls = named_calls(export).filter("on_device").with_columns(**names)
    calls = _with_kernels(export, calls)
    rows = pl.concat([_compute(export), calls], how="diagonal")
    if rows.is_empty():
        raise Unavailable(export.run.missing("kernels") or "no kernels in the wanted steps")
    step = pl.col("step") if export.has_steps else pl.lit(None, pl.Int32)
    counters = counter_columns(export.rows("kernel_counters"))
    if counters.width > 1:
        rows = rows.join(counters, on="kernel", how="left", maintain_order="left")
    rows = rows.sort("start_ns", maintain_order=True).select(
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
        *(
            (_quoted(f"{side}_{what}") if what == "shapes" else pl.col(f"{side}_{what}")).alias(
                f"{side.title()} {title}"
            )
            for side in ("input", "output")
            for what, title in (("shapes", "Shapes"), ("types", "Data Types"), ("formats", "Formats"))
        ),
        *counters.columns[1:],
    )
    return rows.write_csv(null_value="N/A")


def _with_kernels(export: RankExport, calls: pl.DataFrame) -> pl.DataFrame:
    """Calls with the device of their kernels, and the wait before these, where the recording has kernels of them."""
    key = ["start_ns", "correlation"]
    known = export.lazy("kernels").filter(pl.col("kind") == "communication")
    known = known.select(*key, "device", kernel_wait_ns="wait_ns", is_known=pl.lit(value=True))
    found = known.unique(key, keep="first", maintain_order=True).collect()
    joined = calls.join(found, on=key, how="left", nulls_equal=True, maintain_order="left")
    wait = pl.when("is_known").then("kernel_wait_ns").otherwise("wait_ns")
    return joined.with_columns(wait_ns=wait).drop("kernel_wait_ns", "is_known")


def _quoted(column: str) -> pl.Expr:
    """Shapes in an extra pair of quotes, which readers of the format take off without looking."""
    return filled_in('"{}"', column)


def counter_columns(counters: pl.DataFrame) -> pl.DataFrame:
    """`kernel`, and the hardware counters that any kernel has, under the headers and in the units of the format."""
    known = [name for name in counters.columns if name not in ("rank", "kernel") and counters[name].count()]
    titles = {name: recorded_counter(name) for name in known}
    return counters.select(
        "kernel", *((pl.col(name) / factor).round(6).alias(header) for name, (header, factor) in titles.items())
    )


def op_statistic(export: RankExport) -> str:
    """Totals of device work by type if the source states one, else by name; on a host, of operators.

    A recording that has only totals has those instead.
    """
    if not export.run.has("kernels") and not export.run.has("operators"):
        return _stated_totals(export)
    if export.run.has("kernels"):
        work = _compute(export).select(pl.coalesce("type", "name").alias("type"), "core", "duration_ns")
    else:
        spent = pl.coalesce("self_ns", "duration_ns").alias("duration_ns")
        work = export.rows("operators").select(pl.col("name").alias("type"), pl.lit("CPU").alias("core"), spent)
    if work.is_empty():
        raise Unavailable("neither kernels nor operators were recorded")
    return _statistic(export, _totals(work, "type", "core"))


def _stated_totals(export: RankExport) -> str:
    """Totals by type as the recording states them, of its first list that has some: lists may overlap."""
    totals = export.rows("operator_totals").filter(pl.col("level").is_in(["kernel", "type"]))
    for unit in (None, *_UNITS):
        rows = totals.filter(pl.col("unit").eq_missing(pl.lit(unit, pl.String)))
        if rows.height:
            sums = largest_first(
                rows.lazy(),
                "name",
                "core",
                total_ns=pl.sum("total_ns"),
                count=pl.sum("count"),
                min_ns=pl.min("min_ns"),
                max_ns=pl.max("max_ns"),
            )
            mean = pl.col("total_ns") / pl.col("count")
            return _statistic(export, sums.rename({"name": "type"}).with_columns(mean_ns=mean))
    raise Unavailable("neither kernels nor operators were recorded")


def _statistic(export: RankExport, totals: pl.DataFrame) -> str:
    ratio = 100 * pl.col("total_ns") / pl.col("total_ns").sum()
    return totals.select(
        pl.lit(export.facts.get("device")).alias("Device_id"),
        pl.col("type").alias("OP Type"),
        pl.col("core").alias("Core Type"),
        pl.col("count").alias("Count"),
        microseconds("total_ns").alias("Total Time(us)"),
        microseconds("min_ns").alias("Min Time(us)"),
        (pl.col("mean_ns") / 1000).round(3).alias("Avg Time(us)"),
        microseconds("max_ns").alias("Max Time(us)"),
        ratio.round(3).alias("Ratio(%)"),
    ).write_csv()


def api_statistic(export: RankExport) -> str:
    """Totals of the calls into the driver and its runtime, by layer if the names of calls say it."""
    calls = export.lazy("slices").filter(pl.col("category") == "runtime").select("name", "duration_ns").collect()
    if calls.is_empty():
        raise Unavailable("no calls into a device's runtime were recorded")
    layer = pl.col("name").str.extract(r"^(\w+)@").replace_strict(API_LEVELS, default=None, return_dtype=pl.String)
    return (
        _totals(calls, "name")
        .select(
            pl.lit("host").alias("Device_id"),
            layer.fill_null("runtime").alias("Level"),
            pl.when(layer.is_null()).then("name").otherwise(pl.col("name").str.replace(r"^\w+@", "")).alias("API Name"),
            microseconds("total_ns").alias("Time(us)"),
            pl.col("count").alias("Count"),
            (pl.col("mean_ns") / 1000).round(3).alias("Avg(us)"),
            microseconds("min_ns").alias("Min(us)"),
            microseconds("max_ns").alias("Max(us)"),
            (pl.col("variance") / 1e6).round(3).alias("Variance"),
        )
        .write_csv()
    )


def _compute(export: RankExport) -> pl.DataFrame:
    kind = str(export.facts.get("device_kind") or "device").upper()
    rows = export.rows("kernels").filter(pl.col("kind") == "compute")
    return rows.with_columns(pl.col("core").fill_null(kind))


def _totals(rows: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Sums of `duration_ns`, largest first."""
    duration = pl.col("duration_ns")
    return largest_first(
        rows.lazy(),
        *by,
        total_ns=duration.sum(),
        count=pl.len(),
        min_ns=duration.min(),
        mean_ns=duration.mean(),
        max_ns=duration.max(),
        variance=duration.cast(pl.Float64).var(ddof=0),
    )
