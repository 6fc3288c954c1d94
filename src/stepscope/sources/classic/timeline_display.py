"""`timeline_display`: a profile as trace events (us), with fixed numbers for what is not a stream of a device.

It may count from its own first event instead of the device's clock. Its calls then give the offset,
as they are those of the step trace. Those calls are left out here, so that none counts twice. Steps are bars of a
thread of their own, named by the number of the step.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.classic.step_trace import stated_steps
from stepscope.sources.classic.timeline_kernels import MOVES, KernelRows
from stepscope.sources.communication_names import is_library_kernel
from stepscope.sources.plausible import report_strays
from stepscope.sources.spool import EventSpool
from stepscope.sources.timelines import write_timeline
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
_AI_CPU, _CALLS, _HOST, _OVERLAP, _ACTIVITY = "9000", "10000", "11000", "12000", "13000"
"""Processes; the last has the kernels of a GPU under their own names."""
_IS_OPERATOR = ~pl.col("process").is_in([_CALLS, _OVERLAP]).fill_null(value=False) & (
    pl.col("thread").cast(pl.Int64, strict=False).fill_null(0) < _NO_STREAMS
)
_TIMES = ("start_ns", "duration_ns")
_LAUNCH = r"^cu[A-Z]"
"""A type of this form is the call that launched a kernel of a GPU."""
_STEPS = "100000"
"""The thread of the steps."""
_AGREES_NS = 2_000
"""Times were written with three decimals of a microsecond, from ticks of 10 ns."""
_MOST = 0.9
_OPERATOR = pl.coalesce(pl.col("name").str.extract(r"^stream_\d+_\d+_(.+)$"), "name")
"""Calls are named by their operators here, as in step traces (`stream_11_0_AllReduce-op201`), or without the stream."""


class Display:
    """The events of one file, made by `read_display`; `begun` takes the shift of its times, once that is known."""

    def __init__(
        self,
        spool: EventSpool,
        steps: pl.DataFrame,
        operations_ns: int,
        begun: Callable[[int], None],
        *,
        called: pl.DataFrame | None,
    ) -> None:
        self._spool = spool
        self._begun = begun
        self._called = called
        """When the calls were whose kernels are among the activities of a GPU; None elsewhere."""
        self.steps = steps
        """Rows of `steps`, from the events that mark steps."""
        self.operations_ns = operations_ns
        """Sum of all operators, on the host too, without communication."""

    def write_kernels(
        self,
        rows: KernelRows,
        steps: pl.DataFrame | None = None,
        calls: pl.DataFrame | None = None,
        *,
        on_host: bool = False,
    ) -> str | None:
        """Write what ran on the device; returns what is wrong with its times, None if all is well.

        `steps` and `calls` are those of the step trace, if there is one; `on_host` if the rank had no device.
        """
        shift, problem = 0, None
        traced = pl.Series([], dtype=pl.String) if calls is None else calls.select(_OPERATOR).to_series().unique()
        if steps is not None and calls is not None:
            found, matched = self._shift(calls)
            if not self._is_within(steps):
                if found is None:
                    return "its clock differs from that of the step trace, so its kernels are left out"
                shift = found
            elif matched and (found is None or abs(found) > _AGREES_NS):
                problem = "its communication calls start at other times than in the step trace, whose times are used"
        self._begun(shift)
        is_traced = (pl.col("kind") == "communication").fill_null(value=False) & _OPERATOR.is_in(traced.implode())
        if on_host or self._called is not None:  # a host has no streams; the kernels of a GPU's calls are activities
            is_traced = pl.col("is_call")
        for frame in self._spool.batches("kernels"):
            kernels = frame.filter(~is_traced)
            if self._called is not None:
                kernels = kernels.join(self._called, on=_TIMES, how="left", maintain_order="left")
                kernels = kernels.with_columns(kind=pl.coalesce("called", "kind")).drop("called")
            rows.add(kernels.drop("is_call").with_columns(start_ns=pl.col("start_ns") + shift))
        return problem

    def _is_within(self, steps: pl.DataFrame) -> bool:
        """Whether at least half of the kernels are within the steps."""
        first, last = steps.select(pl.min("start_ns"), pl.max("end_ns")).row(0)
        room = (last - first) // 2
        near = pl.col("start_ns").is_between(first - room, last + room)
        inside = sum(int(frame.select(near.sum()).item()) for frame in self._spool.frames("kernels", ["start_ns"]))
        return 2 * inside >= self._spool.rows("kernels")

    def _shift(self, calls: pl.DataFrame) -> tuple[int | None, int]:
        """Offset of its times, from the calls that the step trace has too (None if unknown), and how many these are."""
        frames = [frame.filter(kind="communication") for frame in self._spool.frames("kernels")]
        if not frames or calls.is_empty():
            return None, 0
        nth = pl.int_range(pl.len()).over("name")
        own, traced = (
            times.select("start_ns", name=_OPERATOR).sort("start_ns").select("name", "start_ns", nth=nth)
            for times in (pl.concat(frames), calls)
        )
        both = own.join(traced, on=["name", "nth"], suffix="_traced")
        shifts = (both["start_ns_traced"] - both["start_ns"]).sort()
        if shifts.is_empty():
            return None, 0
        middle = int(shifts[len(shifts) // 2])
        agreeing = int(((shifts - middle).abs() <= _AGREES_NS).sum())
        return middle if agreeing >= _MOST * len(shifts) else None, len(shifts)


def read_display(path: Path, sink: Sink) -> Display:
    """Read a timeline.

    Raises:
        UnreadableInput: If it holds no list of events.
    """
    spool = EventSpool(sink.scratch)
    bars: list[pl.DataFrame] = []
    calls: list[pl.DataFrame] = []
    operations_ns, has_activities = 0, False
    trace = TraceEvents(path, _LAYOUT, sink)
    for batch in trace:
        events = batch.get("ranges")
        if events is None or events.is_empty():
            continue
        bars.append(step_bars(events))
        has_activities |= bool((events["process"] == _ACTIVITY).any())
        calls.append(events.filter(process=_CALLS).select(_TIMES))
        operations_ns += int(events.filter(_IS_OPERATOR)["duration_ns"].sum())
        if not (kernels := _device(events)).is_empty():
            spool.add("kernels", kernels)
    report_strays(spool.drop_strays(), sink.issue, path)
    first_ns = trace.first_ns

    def begun(shift: int) -> None:
        write_timeline(path, first_ns, shift, sink)

    called = pl.concat(calls).unique().with_columns(called=pl.lit("communication")) if has_activities else None
    return Display(spool, steps_of(bars), operations_ns, begun, called=called)


def step_bars(events: pl.DataFrame) -> pl.DataFrame:
    """The events that mark steps: `name`, `start_ns`, `duration_ns`."""
    is_bar = (pl.col("thread") == _STEPS) & pl.col("name").str.contains(r"^\d{1,9}$")
    return events.filter(is_bar).select("name", "start_ns", "duration_ns")


def steps_of(bars: list[pl.DataFrame]) -> pl.DataFrame:
    """Rows of `steps`, in order of time, of any number of `step_bars`.

    MindSpore begins a bar where the first operator of the recording ran last. In PyNative its name, which has a number,
    may never come back: then all bars begin where the first one does, and each is longer than the one before by a step.
    A bar that begins where a shorter one does is therefore the step from the end of that one on.
    """
    if not bars:
        return STEPS.frame()
    ranges = (
        pl.concat(bars)
        .drop_nulls(["start_ns", "duration_ns"])
        .select("start_ns", step=pl.col("name").cast(pl.Int32), end_ns=pl.col("start_ns") + pl.col("duration_ns"))
        .sort("start_ns", "end_ns", "step")
        .unique("step", keep="first", maintain_order=True)
    )
    ended_ns = pl.col("end_ns").shift().over("start_ns")
    return stated_steps(ranges.with_columns(start_ns=pl.coalesce(ended_ns, "start_ns")).sort("start_ns", "step"))


def _device(events: pl.DataFrame) -> pl.DataFrame:
    """What ran on a stream."""
    stream = pl.col("thread").cast(pl.Int32, strict=False)
    process = pl.col("process")
    launched = pl.col("type").str.contains(_LAUNCH).fill_null(value=False)
    on_streams = events.filter((stream < _NO_STREAMS) & ~process.is_in([_HOST, _OVERLAP]).fill_null(value=False))
    is_kernel = (process == _ACTIVITY).fill_null(value=False)
    communicates = is_kernel & pl.lit(is_library_kernel(on_streams["name"])).fill_null(value=False)
    return on_streams.with_columns(stream=stream).select(
        "start_ns",
        "duration_ns",
        "stream",
        name=pl.when(launched).then("name").otherwise(pl.coalesce("full_name", "name")),
        type=pl.when(~launched | pl.col("type").str.contains("(?i)mem(cpy|set)")).then("type"),
        kind=pl.when((process == _CALLS) | communicates)
        .then(pl.lit("communication"))
        .when(is_kernel & pl.col("name").str.contains(MOVES))
        .then(pl.lit("memory")),
        is_call=(process == _CALLS).fill_null(value=False),
        core=pl.when(process == _AI_CPU).then(pl.lit("AI_CPU")),
    )
