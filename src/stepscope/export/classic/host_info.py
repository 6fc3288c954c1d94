"""`host_info/`: what the training process did on the host and what memory it held, from marks and host samples.

Each mark is two rows, its start (0) and its end (1); each sample of the process' memory is a point (2). The option
`profile_framework` decides which there are: `all`, `time` (marks alone), `memory` (points alone) or none.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.export.formatting import csv_text, us
from stepscope.export.rank_export import RankExport
from stepscope.recording_format.rows import MARKS

HEADER = "tid,pid,parent_pid,module_name,event,stage,level,start_end,custom_info,memory_usage(kB),time_stamp(us)"
DATASET_HEADER = "Operation,Stage,Occurrences,Avg. time (us),Custom Info"
_USER_LEVEL = 1
_MODULES = {"data": "Dataset", "step": "Train", "epoch": "Train", "collective": "Communication", "range": "User"}
_KB = 1024  # kB as the kernel counts memory


def write_host_info(export: RankExport) -> None:
    """Write the rows, the timeline, the rows with memory, and the totals of the data set."""
    wanted = (export.about.get("options") or {}).get("profile_framework", "all")
    kinds = ("host_info_{}.csv", "timeline_{}.json", "host_memory_{}.csv", "dataset_{}.csv")
    table, timeline, host_memory, dataset = (f"host_info/{kind.format(export.rank)}" for kind in kinds)
    if wanted not in ("all", "time", "memory"):
        for name in (table, timeline, host_memory, dataset):
            export.leave_out(name, "profile_framework is off")
        return
    if not (export.is_own or export.run.has("host_usage")):
        for name in (table, timeline, host_memory, dataset):
            export.leave_out(name, "phases of the host and its memory are marked in recordings of stepscope only")
        return
    marks = export.within(_marks(export), "start_ns") if wanted != "memory" else _marks(export).clear()
    memory = export.within(_memory(export), "time_ns")
    if wanted == "time":
        memory = memory.clear()
    rows = _rows(export, marks, memory)
    export.write(table, csv_text(HEADER, rows.iter_rows()))
    export.write_json(timeline, _timeline(rows, marks, export))
    with_memory = rows.filter(pl.col("memory_kb") > 0)
    if with_memory.height:
        export.write(host_memory, csv_text(HEADER, with_memory.iter_rows()))
    else:
        export.leave_out(host_memory, "profile_framework is 'time'" if wanted == "time" else "no memory was sampled")
    loading = marks.filter(pl.col("module") == "Dataset")
    if loading.height:
        export.write(dataset, csv_text(DATASET_HEADER, _dataset(loading)))
    else:
        export.leave_out(dataset, "no batch was taken from a loader that is known")


def _marks(export: RankExport) -> pl.DataFrame:
    """Marks with module, event and stage: the loader's class and `getNext`; else kind and name."""
    marks = export.raw(MARKS).filter(pl.col("start_ns").is_not_null() & pl.col("end_ns").is_not_null())
    kind, name = pl.col("kind"), pl.col("name").fill_null("")
    return marks.sort("start_ns", maintain_order=True).with_columns(
        module=kind.replace_strict(_MODULES, default="Framework"),
        event=pl.when(kind == "data").then(name).otherwise(kind),
        stage=pl.when(kind == "data").then(pl.lit("getNext")).otherwise(name),
    )


def _memory(export: RankExport) -> pl.DataFrame:
    """Samples of the resident memory of the process."""
    samples = export.rows("host_usage")
    return samples.filter((pl.col("scope") == "process") & pl.col("rss_bytes").is_not_null()).sort(
        "time_ns", maintain_order=True
    )


def _rows(export: RankExport, marks: pl.DataFrame, memory: pl.DataFrame) -> pl.DataFrame:
    """All rows in order of time; a mark has the memory of the last sample before it."""
    both = pl.concat(
        marks.select("thread", "module", "event", "stage", start_end=pl.lit(end), time_ns=pl.col(column))
        for end, column in enumerate(("start_ns", "end_ns"))
    ).sort("time_ns", maintain_order=True)
    samples = memory.select("time_ns", "rss_bytes")
    point = {"module": "Host", "event": "memory", "stage": "sample", "start_end": 2}
    points = samples.with_columns(pl.lit(value).alias(name) for name, value in point.items())
    rows = pl.concat([both.join_asof(samples, on="time_ns"), points], how="diagonal")
    pid = export.about.get("pid") or export.facts["process"] or 0
    return rows.sort("time_ns", maintain_order=True).select(
        tid=pl.col("thread").fill_null(pid),
        pid=pl.lit(pid),
        parent_pid=pl.lit(export.about.get("parent_pid") or 0),
        module="module",
        event="event",
        stage="stage",
        level=pl.lit(_USER_LEVEL),
        start_end="start_end",
        custom_info=pl.lit(""),
        memory_kb=(pl.col("rss_bytes") // _KB).fill_null(0),
        time_us=pl.col("time_ns") // 1000,
    )


def _timeline(rows: pl.DataFrame, marks: pl.DataFrame, export: RankExport) -> list[dict[str, Any]]:
    """One event a mark, and one a point. Nested ranges of one name stay apart, as each mark knows its own end."""
    pid = str(export.about.get("pid") or export.facts["process"] or 0)
    parent = {"parent_pid": str(export.about.get("parent_pid") or 0)}
    found: list[dict[str, Any]] = []
    columns = ("module", "event", "stage", "start_ns", "end_ns", "thread")
    for module, name, stage, start, end, thread in marks.select(columns).iter_rows():
        times = {"ts": start // 1000, "dur": us(end - start), "ph": "X"}
        who = {"pid": pid, "tid": str(thread or pid), "args": parent}
        found.append({"name": f"{name}::{stage}", "cat": module, **times, **who})
    for when, kb in rows.filter(pl.col("start_end") == 2).select("time_us", "memory_kb").iter_rows():
        args = {**parent, "memory_usage(kB)": kb}
        found.append(
            {"name": "memory::sample", "cat": "Host", "ts": when, "ph": "i", "pid": pid, "tid": pid, "args": args}
        )
    return found


def _dataset(loading: pl.DataFrame) -> list[tuple[object, ...]]:
    totals = loading.group_by("event", "stage", maintain_order=True).agg(
        pl.len().alias("count"), mean_ns=(pl.col("end_ns") - pl.col("start_ns")).mean()
    )
    return [(event, stage, count, us(mean), "") for event, stage, count, mean in totals.iter_rows()]
