"""`marks.csv`: steps, phases and collectives as annotations, with their other data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from stepscope.json_files import value_in
from stepscope.recording_format.about import About
from stepscope.recording_format.marks import (
    BACKWARD,
    COLLECTIVE,
    FORWARD,
    GARBAGE,
    RANGE,
    RUN_DELAY,
    STEP,
    CollectiveDetail,
)
from stepscope.recording_format.rows import MARKS
from stepscope.sources.base import Sink
from stepscope.sources.kineto import communication as comm
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.layout import event_frame
from stepscope.sources.kineto.steps import STEP_PREFIX, Steps
from stepscope.sources.plausible import WEEK_NS
from stepscope.sources.recording.lines import read_rows
from stepscope.sources.recording.phases import whole_steps, with_purposes
from stepscope.text_columns import filled_in

_SHOWN = {"start_ns": pl.Int64, "duration_ns": pl.Int64}
_PHASES = {"kind": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64}
_DELAYS = {"start_ns": pl.Int64, "end_ns": pl.Int64, "run_delay_ns": pl.Int64}

_JITTER_NS = 100_000
"""A step begins where the previous one ended, but clocks are compared again at every flush, to about a microsecond.
More than that is a real overlap."""

_DETAILS: dict[str, pl.DataType] = {
    "group": pl.String(),
    "size_bytes": pl.Int64(),
    "element_type": pl.String(),
    "group_size": pl.Int64(),
    "peer": pl.Int32(),
    "is_async": pl.Boolean(),
}
_NAMED: dict[str, pl.DataType] = {"name": pl.String(), "start_ns": pl.Int64(), "duration_ns": pl.Int64()}

CALLS = {**_NAMED, "operation": pl.String(), **_DETAILS}
"""Communication calls according to the marks."""
COLLECTIONS = {**_NAMED, "thread": pl.String(), "process": pl.String()}
"""Garbage collections according to the marks."""


@dataclass
class Marks:
    """Data of marks in addition to their annotations."""

    rows: int = 0
    calls: list[pl.DataFrame] = field(default_factory=list)
    """Communication calls, as `CALLS`."""
    phases: list[pl.DataFrame] = field(default_factory=list)
    """Forward and backward passes: `kind`, `start_ns`, `end_ns`."""
    delays: list[pl.DataFrame] = field(default_factory=list)
    """What the threads of steps waited for processors: `start_ns`, `end_ns`, `run_delay_ns`."""
    collections: list[pl.DataFrame] = field(default_factory=list)
    """Garbage collections, as `COLLECTIONS`."""

    def all_calls(self) -> pl.DataFrame:
        """All calls in start order."""
        return pl.concat([pl.DataFrame(schema=CALLS), *self.calls]).sort("start_ns")

    def unshown_collections(self, shown: Iterable[pl.DataFrame]) -> pl.DataFrame:
        """The garbage collections that are not among those `shown` by operator windows (`start_ns`, `duration_ns`).

        They are known by their times: a process runs one at a time.
        """
        end = pl.col("start_ns") + pl.col("duration_ns")
        others = pl.concat([pl.DataFrame(schema=_SHOWN), *(frame.select(*_SHOWN) for frame in shown)])
        reach = others.sort("start_ns").select(other_ns="start_ns", reach_ns=end.cum_max())
        marked = pl.concat([pl.DataFrame(schema=COLLECTIONS), *self.collections]).sort("start_ns")
        found = marked.with_columns(end_ns=end).sort("end_ns").join_asof(reach, left_on="end_ns", right_on="other_ns")
        return found.filter((pl.col("reach_ns") <= pl.col("start_ns")).fill_null(True)).select(*COLLECTIONS)

    def phases_of(self, steps: Steps) -> pl.DataFrame:
        """`step`, `forward_start_ns`, `backward_end_ns`, `run_delay_ns` of the steps in which any is marked."""
        marks = pl.concat([pl.DataFrame(schema=_PHASES), *self.phases])
        delays = pl.concat([pl.DataFrame(schema=_DELAYS), *self.delays])
        middle = delays.select((pl.col("start_ns") + pl.col("end_ns")) // 2).to_series()
        waited = delays.select("run_delay_ns", step=steps.of(middle)).drop_nulls("step")
        found = (
            marks.with_columns(step=steps.of(marks["start_ns"]))
            .drop_nulls("step")
            .group_by("step")
            .agg(
                forward_start_ns=pl.col("start_ns").filter(pl.col("kind") == FORWARD).min(),
                backward_end_ns=pl.col("end_ns").filter(pl.col("kind") == BACKWARD).max(),
            )
        )
        return found.join(waited.unique("step", keep="first"), on="step", how="full", coalesce=True)


def read_marks(about: About, events: Events, sink: Sink) -> Marks:
    """Add the marks of a recording to its events, except garbage collections, which windows may have too."""
    parts = whole_steps(read_rows(about.directory, MARKS, sink.issue))
    return add_marks(parts, about, about.directory / MARKS.name, events, sink)


def add_marks(parts: Iterable[pl.DataFrame], about: About, path: Path, events: Events, sink: Sink) -> Marks:
    """Add marks, as the columns of `MARKS`, to events.

    Args:
        parts: The marks, in parts of whole steps.
        about: The recording.
        path: Where they are from, for issues.
    """
    marks, steps = Marks(), _Steps()
    lost = 0
    for part in parts:
        rows = part.filter((pl.col("end_ns") >= pl.col("start_ns")) & (pl.col("end_ns") - pl.col("start_ns") < WEEK_NS))
        lost += part.height - rows.height
        rows = with_purposes(rows)
        rows = rows.with_columns(pl.col("start_ns", "end_ns") + about.shift_ns)
        marks.rows += rows.height
        marks.calls.append(_calls(rows.filter(pl.col("kind") == COLLECTIVE)))
        marks.phases.append(rows.filter(pl.col("kind").is_in([FORWARD, BACKWARD])).select(*_PHASES))
        delay = pl.col("detail").str.extract(RUN_DELAY).cast(pl.Int64, strict=False)
        marked = rows.filter(pl.col("kind") == STEP).select("start_ns", "end_ns", run_delay_ns=delay)
        marks.delays.append(marked.drop_nulls("run_delay_ns"))
        named = steps.named(rows).with_columns(duration_ns=pl.col("end_ns") - pl.col("start_ns"))
        collects = named["kind"] == GARBAGE
        placed = named.select("name", "start_ns", "duration_ns", "thread", process=pl.lit(about.process))
        events.add("annotation", event_frame("annotation", placed.filter(~collects)))
        marks.collections.append(placed.filter(collects))
    if lost:
        problem = f"{lost} marks end before they start, or last longer than a week, and are left out"
        remedy = "A clock was set while the job ran; record again if you need them"
        sink.issue("warning", path, problem, remedy, lost=lost)
    if steps.restarts:
        problem = f"step numbers restart {steps.restarts} times; later steps continue from the last number"
        sink.issue("note", path, problem, "Nothing to do: the training loop was entered several times", place="step")
    return marks


class _Steps:
    """Makes `ProfilerStep#N` of steps, with numbers that only rise: a loop that is entered again begins anew with 1."""

    def __init__(self) -> None:
        self.restarts = 0
        self._last: int | None = None
        self._added = 0
        self._end_ns = 0

    def named(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Marks, in the order of the file, called as annotations: `data: _SingleProcessDataLoaderIter`."""
        number = pl.coalesce("step", pl.col("name").cast(pl.Int64, strict=False))
        found = rows.with_row_index("row").filter((pl.col("kind") == STEP) & number.is_not_null())
        marked = found.select("row", number, "start_ns", "end_ns").iter_rows()
        made = [(row, *self._next(step, start, end)) for row, step, start, end in marked]
        schema = {"row": pl.UInt32, "step_name": pl.String, "step_start_ns": pl.Int64}
        steps = pl.DataFrame(made, schema=schema, orient="row")
        own = pl.col("name").str.replace(f"^{STEP_PREFIX}", "ProfilerStep ")  # a user's range makes no step
        kind = pl.when(pl.col("name").is_null()).then("kind").otherwise(filled_in("{}: {}", "kind", "name"))
        return (
            rows.with_row_index("row")
            .join(steps, on="row", how="left", maintain_order="left")
            .with_columns(
                name=pl.coalesce("step_name", pl.when(pl.col("kind") == RANGE).then(own), kind),
                start_ns=pl.coalesce("step_start_ns", "start_ns"),
            )
        )

    def _next(self, number: int, start_ns: int, end_ns: int) -> tuple[str, int]:
        """Name and start of the next step."""
        if self._last is not None and number + self._added <= self._last:
            self._added = self._last + 1 - number
            self.restarts += 1
        self._last = number + self._added
        if self._end_ns - _JITTER_NS < start_ns < self._end_ns <= end_ns:
            start_ns = self._end_ns
        self._end_ns = end_ns
        return f"{STEP_PREFIX}{self._last}", start_ns


def _calls(rows: pl.DataFrame) -> pl.DataFrame:
    details = [CollectiveDetail.of(value_in(text)) for text in rows["detail"]]
    known = {
        column: pl.Series([getattr(detail, column) for detail in details], dtype=dtype)
        for column, dtype in _DETAILS.items()
    }
    name, duration = pl.col("name").fill_null(COLLECTIVE), pl.col("end_ns") - pl.col("start_ns")
    return rows.select(name, "start_ns", duration_ns=duration, operation=comm.operation_of(name), **known)
