"""`host_info/`: what the framework did on the host, by module, event and stage, and the memory of the process.

A row of `host_info_N.csv` is the start (0) or the end (1) of a range, or a point (2). An end belongs to the last start
that is open of the same thread, module, event and stage.
"""

from __future__ import annotations

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.raw_clock import raw_clock
from stepscope.sources.csv_files.layout import Field, FileLayout, order
from stepscope.sources.csv_files.reading import read_csv
from stepscope.sources.minddata.pipeline import read_stages
from stepscope.tables import HOST_EVENTS, OPERATOR_TOTALS

_EVENTS = FileLayout(
    fields=(
        Field("thread", "int", ("tid",)),
        Field("process", "int", ("pid",)),
        Field("parent_process", "int", ("parent_pid",)),
        Field("module", "text", ("module_name",), required=True),
        Field("event", "text", ("event",)),
        Field("stage", "text", ("stage",)),
        Field("level", "int", ("level",)),
        Field("edge", "int", ("start_end",), required=True),
        Field("custom", "text", ("custom_info",)),
        Field("memory", "kib", ("memory_usage",)),
        Field("time_ns", "time", ("time_stamp",), required=True),
    ),
    report_cells=True,
    report_empty=True,
    orders=(order("tid,pid,parent_pid,module_name,event,stage,level,start_end,custom_info,memory_usage,time_stamp"),),
)
_SAME = ("process", "thread", "module", "event", "stage")
_START, _END, _POINT = 0, 1, 2


def write_host_info(files: RankFiles, sink: Sink) -> None:
    """Write `host_events`, and the totals of dataset stages in `operator_totals` if there are no such events."""
    has_dataset = _write_events(files, sink)
    stages = files.one("host_dataset")
    if stages is not None and not has_dataset:
        sink.write(OPERATOR_TOTALS, read_stages(stages, sink))


def _write_events(files: RankFiles, sink: Sink) -> bool:
    """Write the events; returns whether any belongs to the dataset.

    Their clock is that of the host. It becomes that of the device if a raw profile with the same clock leads there.
    """
    file = files.one("host_info")
    rows = read_csv(file, _EVENTS, sink)
    if file is None or rows is None:
        return False
    sampled = pl.when(pl.col("memory") > 0).then("memory").alias("memory")  # 0 where memory was not recorded
    known = rows.filter(pl.col("edge").is_in([_START, _END, _POINT])).with_columns(sampled)
    if lost := rows.height - known.height:
        problem = f"{lost} rows are not a start, end or point and are left out"
        sink.issue("error", file, problem, "Copy the file again.", place="start_end", lost=lost)
    points = known.filter(pl.col("edge") == _POINT).with_columns(end_ns=pl.lit(None, pl.Int64), memory_end=None)
    ranges, orphans = _paired(known.filter(pl.col("edge") != _POINT))
    remedy = "Nothing to do if recording began or ended meanwhile; otherwise copy the file again."
    if open_starts := ranges["end_ns"].null_count():
        have = "start has" if open_starts == 1 else "starts have"
        sink.issue("note", file, f"{open_starts} {have} no end and no duration", remedy)
    if orphans:
        have = "end has" if orphans == 1 else "ends have"
        sink.issue("note", file, f"{orphans} {have} no start: left out", remedy, lost=orphans)
    events = pl.concat([ranges, points.select(ranges.columns)]).sort("time_ns", maintain_order=True)
    if (clock := raw_clock(files)) is not None:
        events = events.with_columns(pl.col("time_ns", "end_ns") + clock.shift_of(events["time_ns"]))
    same = [name for name in HOST_EVENTS.stored_schema if name in events.columns and name != "level"]
    rows = events.select(
        *same,
        pl.col("level").cast(pl.Int32, strict=False),
        start_ns="time_ns",
        duration_ns=pl.col("end_ns") - pl.col("time_ns"),
        memory_start_bytes="memory",
        memory_end_bytes="memory_end",
    )
    sink.write(HOST_EVENTS, rows)
    return bool((events["module"] == "Dataset").any())


def _paired(edges: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Starts with `end_ns` and `memory_end` (null if the end is lost), and the number of ends without a start.

    A start opens a level of its thread, module, event and stage, an end closes it: within one level, starts and ends
    take turns. An end below the lowest level so far has no start.
    """
    change = pl.when(pl.col("edge") == _START).then(1).otherwise(-1)
    rows = (
        edges.sort("time_ns", maintain_order=True)
        .with_columns(depth=change.cum_sum().over(_SAME))
        .with_columns(lowest=pl.min_horizontal(pl.col("depth").cum_min().over(_SAME), 0))
        .with_columns(before=pl.col("lowest").shift(1, fill_value=0).over(_SAME))
    )
    is_end = pl.col("edge") == _END
    kept = rows.filter(~is_end | (pl.col("lowest") >= pl.col("before")))
    # the level that a start opens or an end closes, above the floor that orphans have lowered
    kept = kept.with_columns(level_of=pl.col("depth") - pl.col("lowest") + is_end.cast(pl.Int32))
    edge, end_ns, memory_end = (
        pl.col(name).shift(-1).over(*_SAME, "level_of") for name in ("edge", "time_ns", "memory")
    )
    closes = edge == _END
    ranges = kept.with_columns(end_ns=pl.when(closes).then(end_ns), memory_end=pl.when(closes).then(memory_end))
    starts = ranges.filter(pl.col("edge") == _START).select(*edges.columns, "end_ns", "memory_end")
    return starts, rows.height - kept.height
