"""`minddata_cpu_utilization` from host samples: CPU of the machine, of the process and of the loader's workers.

Percentages of the machine are shares of all its processors, those of processes shares of one. The samples are totals,
so each figure covers the time since the previous sample, and there is one figure less than there are times. The time of
workers, which read the data set and make batches, counts as the loader's. Readers expect a list of the pipeline's
operators next to this file, even if it is empty.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.export.classic.framework_files import CPU, PIPELINE
from stepscope.export.classic.loader_pipeline import LOADER
from stepscope.export.rank_export import RankExport
from stepscope.recording_format.rows import HOST

_MB = 1 << 20
_CPU = ("user_ns", "system_ns", "idle_ns", "io_wait_ns")


def write_cpu_usage(export: RankExport) -> None:
    """Write it, unless MindData's own was copied."""
    name = f"{CPU}_{export.rank}.json"
    if name in export.written:
        return
    samples = export.within(export.raw(HOST).drop_nulls("time_ns"), "time_ns")
    host = samples.filter(pl.col("scope") == "host").unique("time_ns").sort("time_ns")
    if host.height < 2:
        export.leave_out(name, f"{host.height} host samples; a share of CPU time needs two")
        return
    content: dict[str, Any] = {
        "cpu_processor_num": int(host["processors"].drop_nulls().max() or 1),  # type: ignore[arg-type]
        "sampling_interval": max(round(float(host["time_ns"].diff().median() or 0) / 1e6), 1),  # type: ignore[arg-type]
        "time_stamp": (host["time_ns"] // 1_000_000).to_list(),
        "device_info": _machine(host),
        "process_info": _used(samples, "process", host),
        "system_memory_info": _system_memory(host),
        "process_memory_info": _process_memory(samples, host),
    }
    content["op_info"] = []
    if (pipeline := f"{PIPELINE}_{export.rank}.json") not in export.written:
        export.write_json(pipeline, {"op_info": [], "sampling_interval": content["sampling_interval"]})
    elif "worker" in samples["scope"]:
        content["op_info"] = [{"op_id": LOADER, "metrics": _used(samples, "worker", host)}]
    export.write_json(name, content)


def _machine(host: pl.DataFrame) -> dict[str, list[int]]:
    spent = host.select(pl.col(column).diff().clip(lower_bound=0) for column in _CPU)
    whole = pl.sum_horizontal(_CPU)
    shares = spent.select(_rounded(pl.col(column) * 100 / pl.when(whole > 0).then(whole)) for column in _CPU)
    user, system, idle, io = (shares[column].to_list()[1:] for column in _CPU)
    switches = host["context_switches"].diff().fill_null(0).clip(lower_bound=0).to_list()[1:]
    return {
        "user_utilization": user,
        "sys_utilization": system,
        "io_utilization": io,
        "idle_utilization": idle,
        "runnable_process": host["runnable"].fill_null(0).to_list()[1:],
        "context_switch_count": switches,
    }


def _used(samples: pl.DataFrame, scope: str, host: pl.DataFrame) -> dict[str, list[int]]:
    """CPU of all processes of a scope in percent of one processor, at the times of the host's samples."""
    times = host.select(at="time_ns")
    spent = (
        samples.filter(pl.col("scope") == scope)
        .sort("pid", "time_ns")
        .with_columns(pl.col("user_ns", "system_ns").diff().over("pid").clip(lower_bound=0))
        .sort("time_ns")
        .join_asof(times, left_on="time_ns", right_on="at", strategy="nearest", coalesce=False)
        .group_by("at")
        .agg(pl.col("user_ns", "system_ns").sum())
    )
    lengths = times.join(spent, on="at", how="left").sort("at").with_columns(length=pl.col("at").diff())
    shares = lengths.select(_rounded(pl.col(name) * 100 / pl.col("length")) for name in ("user_ns", "system_ns"))
    return {"user_utilization": shares["user_ns"].to_list()[1:], "sys_utilization": shares["system_ns"].to_list()[1:]}


def _rounded(percent: pl.Expr) -> pl.Expr:
    return percent.round().fill_nan(0).fill_null(0).cast(pl.Int64)


def _system_memory(host: pl.DataFrame) -> dict[str, list[float]]:
    total, available = host["total_bytes"].fill_null(0) / _MB, host["available_bytes"].fill_null(0) / _MB
    return {
        "total_sys_memory_mbytes": total.to_list(),
        "available_sys_memory_mbytes": available.to_list(),
        "used_sys_memory_mbytes": (total - available).to_list(),
    }


def _process_memory(samples: pl.DataFrame, host: pl.DataFrame) -> dict[str, list[float]]:
    mine = samples.filter(pl.col("scope") == "process").sort("time_ns").select("time_ns", "rss_bytes")
    joined = host.select("time_ns").join_asof(mine, on="time_ns", strategy="nearest")
    return {"rss_mbytes": (joined["rss_bytes"].fill_null(0) / _MB).to_list()}
