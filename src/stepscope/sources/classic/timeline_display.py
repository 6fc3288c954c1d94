"""`timeline_display`: a profile as trace events (us), with fixed numbers for what is not a stream of a device.

It may count from its own first event instead of the device's clock. Its calls then give the offset,
as they are those of the step trace.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.classic.step_bars import step_bars, steps_of
from stepscope.sources.classic.timeline_kernels import KernelRows
from stepscope.sources.plausible import STRAY, STRAY_REMEDY
from stepscope.sources.spool import EventSpool
from stepscope.sources.trace_events.base import Arg, EventClass, Layout
from stepscope.sources.trace_events.reader import TraceEvents
from stepscope.tables import STEPS

_LAYOUT = Layout(
    (
        EventClass(
            "ranges",
            frozenset({"X"}),
            None,
            (
                Arg("type", "type", "text"),
                Arg("fullname", "full_name", "text"),
                Arg("op_full_name", "full_name", "text"),
            ),
        ),
    )
)
_NO_STREAMS = 100000
"""Threads from this number on are rows for steps, scopes and the host."""
_AI_CPU, _CALLS, _HOST, _OVERLAP = "9000", "10000", "11000", "12000"
"""Processes."""
_IS_OPERATOR = ~pl.col("process").is_in([_CALLS, _OVERLAP]).fill_null(value=False) & (
    pl.col("thread").cast(pl.Int64, strict=False).fill_null(0) < _NO_STREAMS
)
_LAUNCH = r"^cu[A-Z]"
"""A type of this form is the call that launched a kernel of a GPU."""
_AGREES_NS = 2_000
"""Times were written with three decimals of a microsecond, from ticks of 10 ns."""
_MOST = 0.9


class Display:
    """The events of one file. Made by `read_display`."""

    def __init__(self, spool: EventSpool, steps: pl.DataFrame, operations_ns: int) -> None:
        self._spool = spool
        self.steps = steps
        """Rows of `steps`, from the events that mark steps."""
        self.operations_ns = operations_ns
        """Sum of all operators, on the host too, without communication."""

    def write_kernels(self, rows: KernelRows, steps: pl.DataFrame | None, calls: pl.DataFrame | None) -> str | None:
        """Write what ran on the device.

        Args:
            rows: Takes the kernels.
            steps: Rows of `steps` of the step trace, if there is one.
            calls: Its rows of `collectives`.

        Returns:
            Why nothing was written; None if all is well.
        """
        shift = 0
        if steps is not None and not self._is_within(steps):
            found = self._shift(calls)
            if found is None:
                return "its clock differs from that of the step trace, so its kernels are left out"
            shift = found
        for frame in self._spool.batches("kernels"):
            rows.add(frame.with_columns(start_ns=pl.col("start_ns") + shift))
        return None

    def _is_within(self, steps: pl.DataFrame) -> bool:
        """Whether at least half of the kernels are within the steps."""
        first, last = steps.select(pl.min("start_ns"), pl.max("end_ns")).row(0)
        room = (last - first) // 2
        near = pl.col("start_ns").is_between(first - room, last + room)
        inside = sum(int(frame.select(near.sum()).item()) for frame in self._spool.frames("kernels", ["start_ns"]))
        return 2 * inside >= self._spool.rows("kernels")

    def _shift(self, calls: pl.DataFrame | None) -> int | None:
        """Offset of its times, from the calls that the step trace has too; None if unknown."""
        if calls is None or calls.is_empty():
            return None
        frames = [frame.filter(kind="communication") for frame in self._spool.frames("kernels")]
        own = pl.concat(frames).select("name", own_ns="start_ns").sort("own_ns") if frames else pl.DataFrame()
        if own.is_empty():
            return None
        nth = pl.int_range(pl.len()).over("name")
        both = own.with_columns(nth=nth).join(
            calls.sort("start_ns").select("name", "start_ns", nth=nth), on=["name", "nth"]
        )
        shifts = (both["start_ns"] - both["own_ns"]).sort()
        if shifts.is_empty():
            return None
        middle = int(shifts[len(shifts) // 2])
        agreeing = int(((shifts - middle).abs() <= _AGREES_NS).sum())
        return middle if agreeing >= _MOST * len(shifts) else None


def read_display(path: Path, sink: Sink) -> Display:
    """Read a timeline.

    Args:
        path: The file.
        sink: Told about damage.

    Raises:
        UnreadableInput: If it holds no list of events.
    """
    spool = EventSpool(sink.scratch)
    bars: list[pl.DataFrame] = []
    operations_ns = 0
    for batch in TraceEvents(path, _LAYOUT, report=sink.issue, workers=sink.workers, advance=sink.advance):
        events = batch.frames.get("ranges")
        if events is None or events.is_empty():
            continue
        bars.append(step_bars(events).select("name", "start_ns", "duration_ns"))
        operations_ns += int(events.filter(_IS_OPERATOR)["duration_ns"].sum())
        if not (kernels := _device(events)).is_empty():
            spool.add("kernels", kernels)
    if strays := spool.drop_strays():
        sink.issue("warning", path, f"{strays} events {STRAY}; they are left out", STRAY_REMEDY, lost=strays)
    return Display(spool, steps_of(pl.concat(bars)) if bars else STEPS.frame(), operations_ns)


def _device(events: pl.DataFrame) -> pl.DataFrame:
    """What ran on a stream."""
    stream = pl.col("thread").cast(pl.Int32, strict=False)
    process = pl.col("process")
    launched = pl.col("type").str.contains(_LAUNCH).fill_null(value=False)
    return (
        events.filter((stream < _NO_STREAMS) & ~process.is_in([_HOST, _OVERLAP]).fill_null(value=False))
        .with_columns(stream=stream)
        .select(
            "start_ns",
            "duration_ns",
            "stream",
            name=pl.when(launched).then("name").otherwise(pl.coalesce("full_name", "name")),
            type=pl.when(launched & pl.col("type").str.contains("(?i)mem(cpy|set)"))
            .then("type")
            .when(~launched)
            .then("type"),
            kind=pl.when(process == _CALLS).then(pl.lit("communication")),
            core=pl.when(process == _AI_CPU).then(pl.lit("AI_CPU")),
        )
    )
