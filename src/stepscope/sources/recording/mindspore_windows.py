"""Windows that MindSpore's CPU profiler wrote: operators with their shapes, and the allocator's curve."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.kineto import communication as comm
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.layout import event_frame
from stepscope.sources.recording.about import About
from stepscope.sources.recording.lines import read_whole
from stepscope.sources.recording.marks import CALLS
from stepscope.sources.recording.windows import FIRST_EPOCH_NS, Window
from stepscope.tables import MEMORY_CURVE
from stepscope.tables.base import with_schema

_TIMES = "cpu_op_execute_timestamp_"
_LAUNCHES = "cpu_framework_"
_MEMORY = "cpu_ms_memory_record_"

IS_COMMUNICATION = (
    r"^(Dist|Inner)?(Comm)?(AllReduce|AllGather\w*|ReduceScatter\w*|Broadcast|All[tT]oAll\w*|NeighborExchange\w*"
    r"|Send|Isend|Receive|Irecv|Barrier|(Collective)?(Scatter|Gather)|Reduce)$"
)
"""Types of operators that communicate."""

_MEMORY_COLUMNS = {
    "Timestamp(ns)": "time_ns",
    "Total Allocated(Byte)": "allocated_bytes",
    "Total Reserved(Byte)": "reserved_bytes",
    "Total Active(Byte)": "active_bytes",
}


class MindSporeWindows:
    """Adds windows to the events, one after the other.

    Args:
        about: The recording.
        events: Takes the operators.
        sink: Takes the memory curve; told about damage.
    """

    def __init__(self, about: About, events: Events, sink: Sink) -> None:
        self._about = about
        self._events = events
        self._sink = sink
        self._curve_until_ns: int | None = None
        self.calls: list[pl.DataFrame] = []
        """Operators that communicate, as `marks.CALLS`."""

    def add(self, window: Window) -> None:
        """Add one window.

        Raises:
            OSError: If a file cannot be read.
        """
        files = {prefix: file for prefix in (_TIMES, _LAUNCHES, _MEMORY) if (file := _named(window, prefix))}
        if _TIMES in files:
            self._add_operators(files[_TIMES], files.get(_LAUNCHES))
        if _MEMORY in files:
            self._add_memory(files[_MEMORY])

    def _add_operators(self, times: Path, launches: Path | None) -> None:
        calls = _executions(times)
        rows = calls.drop_nulls(["start_ns", "duration_ns"]).filter(pl.col("duration_ns") >= 0)
        if lost := calls.height - rows.height:
            problem = f"{lost} executions of operators have no readable time and are left out"
            self._sink.issue("warning", times, problem, "The rest is complete", lost=lost)
        # before 2.5 MindSpore goes by the monotonic clock
        if (first := rows["start_ns"].min()) is not None and int(first) < FIRST_EPOCH_NS:  # type: ignore[arg-type]
            if self._about.epoch_shift_ns is None:
                problem = (
                    "operators go by a clock of which it is unknown how it stands to the others; they are left out"
                )
                self._sink.issue("error", times, problem, "Record with MindSpore 2.5 or later", lost=rows.height)
                return
            rows = rows.with_columns(pl.col("start_ns") + self._about.epoch_shift_ns)
        rows = rows.with_columns(pl.col("start_ns") + self._about.shift_ns).sort("start_ns", maintain_order=True)
        rows = rows.with_columns(type=pl.col("name").str.extract(r"([^/]+?)(?:-op\d+)?$", 1))
        if launches is not None:
            rows = _with_shapes(rows, launches)
        self.calls.append(_communication(rows))
        placed = rows.with_columns(process=pl.lit(self._about.process))
        self._events.add("operator", event_frame("operator", placed.drop("type", "short")).with_columns(placed["type"]))

    def _add_memory(self, file: Path) -> None:
        """Each window repeats what the earlier ones wrote."""
        schema = dict.fromkeys(_MEMORY_COLUMNS, pl.Int64)
        rows = read_whole(file, schema, ("Timestamp(ns)",), self._sink.issue).rename(_MEMORY_COLUMNS)
        new = rows if self._curve_until_ns is None else rows.filter(pl.col("time_ns") > self._curve_until_ns)
        if new.height:
            self._curve_until_ns = int(new["time_ns"].max())  # type: ignore[arg-type]
            before_2_5 = self._about.epoch_shift_ns or 0
            epoch = pl.when(pl.col("time_ns") < FIRST_EPOCH_NS).then(before_2_5).otherwise(0)
            self._sink.write(MEMORY_CURVE, new.with_columns(pl.col("time_ns") + epoch + self._about.shift_ns))


def _named(window: Window, prefix: str) -> Path | None:
    return next((file for file in window.files if file.name.startswith(prefix) and file.exists()), None)


def _lines(file: Path) -> pl.Series:
    text = file.read_bytes().decode("utf-8", "replace")
    return pl.Series("line", text.splitlines(), dtype=pl.String)


def _executions(file: Path) -> pl.DataFrame:
    """`name`, `short` (its last part), `start_ns`, `duration_ns`, `thread`: a row each time an operator ran.

    A line is `name;HostCpuOps;<start ns>,<duration ms>,<thread> <start>,...`.
    """
    parts = pl.col("line").str.splitn(";", 3).struct
    one = pl.col("call").str.split_exact(",", 2).struct
    return (
        _lines(file)
        .to_frame()
        .select(name=parts.field("field_0"), call=parts.field("field_2").str.strip_chars().str.split(" "))
        .explode("call")
        .filter(pl.col("call").fill_null("x") != "")
        .select(
            "name",
            short=pl.col("name").str.extract(r"([^/]+)$", 1),
            start_ns=one.field("field_0").cast(pl.Int64, strict=False),
            duration_ns=(one.field("field_1").cast(pl.Float64, strict=False) * 1e6)
            .round()
            .cast(pl.Int64, strict=False),
            thread=one.field("field_2"),
        )
    )


def _with_shapes(rows: pl.DataFrame, launches: Path) -> pl.DataFrame:
    """Operators with `input_shapes`, as JSON.

    The file has a line a launch, in launch order, with the last part of the name: the k-th launch of a name is the k-th
    of its executions. Where a window's edge cut the one or the other off, shapes are given only if all agree.
    """
    parts = pl.col("line").str.split(";")
    inputs = pl.col("line").str.extract_all(r":(\[[^\]]*\]|NoShape);").list.join("")
    shapes = inputs.str.replace_all("NoShape", "null").str.strip_chars(":;").str.replace_all(";:", ", ", literal=True)
    order = pl.int_range(pl.len()).over("short")
    launched = (
        _lines(launches)
        .to_frame()
        .select(short=parts.list.get(1, null_on_oob=True), input_shapes=pl.format("[{}]", shapes))
        .filter(pl.col("short") != "")
        .with_columns(
            order=order, launches=pl.len().over("short"), alike=pl.col("input_shapes").n_unique().over("short")
        )
    )
    ordered = rows.with_columns(order=order, runs=pl.len().over("short"))
    exact = ordered.join(launched, on=["short", "order"], how="left", maintain_order="left")
    common = launched.filter(pl.col("alike") == 1).unique("short").select("short", common="input_shapes")
    known = pl.when(pl.col("runs") == pl.col("launches")).then("input_shapes").otherwise("common")
    joined = exact.join(common, on="short", how="left", maintain_order="left")
    return joined.select(*rows.columns, input_shapes=known)


def _communication(rows: pl.DataFrame) -> pl.DataFrame:
    found = rows.filter(pl.col("type").str.contains(IS_COMMUNICATION))
    calls = found.select("name", "start_ns", "duration_ns", operation=comm.operation_of(pl.col("type")))
    return with_schema(calls, CALLS)
