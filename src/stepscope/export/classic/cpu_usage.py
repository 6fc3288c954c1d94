"""`minddata_cpu_utilization` from host samples: CPU of the machine, of the process and of the loader's workers.

Percentages of the machine are shares of all its processors, those of processes shares of one. Each figure covers the
time since the previous sample, so there is one figure less than there are times. The time of workers, which read the
data set and make batches, counts as the loader's. Readers expect a list of the pipeline's operators next to this file,
even if it is empty.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.export.classic.framework_files import CPU, PIPELINE
from stepscope.export.classic.pipeline_raw import LOADER
from stepscope.export.rank_export import RankExport
from stepscope.present import plural

_MB = 1 << 20


def write_cpu_usage(export: RankExport) -> None:
    """Write it, unless MindData's own was copied."""
    name = f"{CPU}_{export.rank}.json"
    if name in export.written:
        return
    samples = export.within(export.rows("host_usage").drop_nulls("time_ns"), "time_ns")
    host = (
        samples.filter(pl.col("scope") == "host").unique("time_ns", keep="first", maintain_order=True).sort("time_ns")
    )
    if host.height < 2:
        found = plural(host.height, "sample") if host.height else "no samples"
        export.leave_out(name, f"{found} of the host's processors; a share of CPU time needs two")
        return
    total, available = host["total_bytes"].fill_null(0) / _MB, host["available_bytes"].fill_null(0) / _MB
    process = (
        samples.filter(pl.col("scope") == "process").sort("time_ns", maintain_order=True).select("time_ns", "rss_bytes")
    )
    resident = host.select("time_ns").join_asof(process, on="time_ns", strategy="nearest")["rss_bytes"]
    content: dict[str, Any] = {
        "cpu_processor_num": int(host["processors"].drop_nulls().max() or 1),  # type: ignore[arg-type]
        "sampling_interval": max(round(float(host["time_ns"].diff().median() or 0) / 1e6), 1),  # type: ignore[arg-type]
        "time_stamp": (host["time_ns"] // 1_000_000).to_list(),
        "device_info": _machine(host),
        "process_info": _used(samples, "process", host),
        "system_memory_info": {
            "total_sys_memory_mbytes": total.to_list(),
            "available_sys_memory_mbytes": available.to_list(),
            "used_sys_memory_mbytes": (total - available).to_list(),
        },
        "process_memory_info": {"rss_mbytes": (resident.fill_null(0) / _MB).to_list()},
        "op_info": [],
    }
    if (pipeline := f"{PIPELINE}_{export.rank}.json") not in export.written:
        export.write_json(pipeline, {"op_info": [], "sampling_interval": content["sampling_interval"]})
    elif "worker" in samples["scope"]:
        content["op_info"] = [{"op_id": LOADER, "metrics": _used(samples, "worker", host)}]
    export.write_json(name, content)


def _machine(host: pl.DataFrame) -> dict[str, list[int]]:
    names = {"user": "user_ratio", "sys": "system_ratio", "io": "io_ratio", "idle": "idle_ratio"}
    shares = {f"{name}_utilization": _percent(host[column])[1:] for name, column in names.items()}
    counts = {"runnable_process": "runnable", "context_switch_count": "context_switches"}
    return {**shares, **{name: host[column].fill_null(0).to_list()[1:] for name, column in counts.items()}}


def _used(samples: pl.DataFrame, scope: str, host: pl.DataFrame) -> dict[str, list[int]]:
    """CPU of all processes of a scope in percent of one processor, at the times of the host's samples."""
    times = host.select(at="time_ns")
    busy = (
        samples.filter(pl.col("scope") == scope)
        .with_columns(pl.col("user_ratio", "system_ratio") * pl.col("processors"))
        .sort("time_ns", maintain_order=True)
        .join_asof(times, left_on="time_ns", right_on="at", strategy="nearest", coalesce=False)
        .group_by("at")
        .agg(pl.col("user_ratio", "system_ratio").sum())
    )
    known = times.join(busy, on="at", how="left").sort("at")
    user, system = (_percent(known[name])[1:] for name in ("user_ratio", "system_ratio"))
    return {"user_utilization": user, "sys_utilization": system}


def _percent(ratios: pl.Series) -> list[int]:
    return list((ratios * 100).round().fill_nan(0).fill_null(0).cast(pl.Int64))
