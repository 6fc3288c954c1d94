"""`host_events`, `slices` and `operators` from events of the runtime profiler, and the steps that they are in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.nesting import nest
from stepscope.sources.plausible import FIRST_EPOCH_NS, STRAY_REMEDY, Times, lost_rows, sort_out
from stepscope.sources.windows import around, span_of
from stepscope.tables import HOST_EVENTS, OPERATORS, SLICES, STEPS
from stepscope.text_columns import filled_in

_LAUNCH = "KernelLaunch"
"""Event whose operator is a kernel that ran."""
_SPANS = {"step": pl.Int32, "start_ns": pl.Int64, "end_ns": pl.Int64}


class RuntimeTables:
    """Writes events as they come."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._times = Times()
        self._next = 0
        self._wrong: Counter[str] = Counter()
        self._spans = [pl.DataFrame(schema=_SPANS)]
        self.span: tuple[int, int] | None = None
        """First start and last end."""
        self.process: int | None = None
        """The first process of an event."""

    def write(self, events: pl.DataFrame) -> None:
        """Write some events, as `events.EVENTS`."""
        sane = self._sane(events)
        if sane.is_empty():
            return
        rows = sane.sort("start_ns", "duration_ns", descending=[False, True], maintain_order=True)
        self.span = around([self.span, span_of(rows)])
        self.process = rows["process"][0] if self.process is None else self.process
        ends = pl.col("start_ns") + pl.col("duration_ns")
        self._spans.append(rows.drop_nulls("step").group_by("step").agg(pl.min("start_ns"), end_ns=ends.max()))
        stage = pl.when(pl.col("operator") != "").then("operator")
        self._sink.write(HOST_EVENTS, rows.select(pl.exclude("operator"), stage=stage))
        self._write_slices(rows)

    def report(self, path: Path) -> None:
        """Report events whose times cannot be true."""
        if lost := sum(self._wrong.values()):
            self._sink.issue("warning", path, lost_rows(self._wrong, lost + self._next), STRAY_REMEDY, lost=lost)

    def steps(self) -> pl.DataFrame:
        """First start and last end of the events of each step, in order."""
        spans = pl.concat(self._spans).group_by("step").agg(pl.min("start_ns"), pl.max("end_ns"))
        return spans.sort("start_ns")

    def _sane(self, events: pl.DataFrame) -> pl.DataFrame:
        """Without those at impossible times, e.g. of an event that never ended."""
        ours = events.filter(pl.col("start_ns") >= FIRST_EPOCH_NS)
        self._times.add(ours["start_ns"])
        start = pl.col("start_ns")
        checked = sort_out(events, self._times.middle_ns, start=start, end=start + pl.col("duration_ns"))
        self._wrong.update(checked.wrong)
        return checked.rows

    def _write_slices(self, rows: pl.DataFrame) -> None:
        first = self._next
        self._next += rows.height
        is_launch = pl.col("event") == _LAUNCH
        whole = filled_in("{}::{}::{}", "module", "event", pl.col("operator").fill_null(""))
        nested = nest(rows.select("start_ns", "duration_ns", "thread"))
        named = rows.with_columns(
            nested["self_ns"],
            nested["depth"],
            (nested["parent"] + first).alias("parent"),
            slice=pl.int_range(first, self._next),
            name=pl.when(is_launch).then("operator").otherwise(whole),
            category=pl.when(is_launch).then(pl.lit("operator")).otherwise(pl.lit("other")),
            thread=pl.col("thread").cast(pl.String),
            process=pl.col("process").cast(pl.String),
        )
        self._sink.write(SLICES, named.drop("module", "event", "operator"))
        launches = named.filter(is_launch & (pl.col("operator") != ""))
        kept = [name for name in OPERATORS.stored_schema if name in named.columns]
        self._sink.write(OPERATORS, launches.select(*kept, type="operator"))


def steps_of(spans: pl.DataFrame, stated: pl.DataFrame) -> pl.DataFrame:
    """Rows of `steps`: the length of a step is stated, and it ends with its last event.

    A step begins before its first event, for Python runs first; where lengths reach back into the step before, or
    are not known, the step begins with its first event.

    Args:
        spans: `step`, `start_ns`, `end_ns` of the events of each step, in order.
        stated: `step`, `length_ns`.
    """
    lengths = stated.drop_nulls().unique("step", keep="first")
    rows = spans.join(lengths, on="step", how="left", maintain_order="left")
    start = pl.min_horizontal("start_ns", pl.col("end_ns") - pl.col("length_ns"))
    start = pl.when(start >= pl.col("end_ns").shift(1).fill_null(0)).then(start).otherwise("start_ns")
    placed = rows.select("step", "end_ns", start_ns=start)
    return STEPS.shaped(placed.with_columns(window_start_ns="start_ns", window_end_ns="end_ns", window=pl.lit("host")))
