"""Tables from the events of one rank: for a single trace, and for the windows of a recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.cutting import ahead
from stepscope.sources.flows import matched_flows
from stepscope.sources.kineto.collectives import Calls, group_rows, numbered
from stepscope.sources.kineto.compiling import report_traced
from stepscope.sources.kineto.counter_ranges import write_counter_ranges
from stepscope.sources.kineto.details import write_splits, write_threads
from stepscope.sources.kineto.device import DeviceCounts, device_work, report, write_kernels
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.facts import Facts, gather_facts
from stepscope.sources.kineto.host import HostTree
from stepscope.sources.kineto.layout import DEVICE_CLASSES, HOST_CLASSES
from stepscope.sources.kineto.memory import MemoryWriter
from stepscope.sources.kineto.segments import segments
from stepscope.sources.kineto.slices import SliceWriter
from stepscope.sources.kineto.steps import Steps, report_overlaps, report_rest, step_rows
from stepscope.sources.native import library
from stepscope.sources.plausible import report_strays
from stepscope.sources.windows import STREAM_SPANS, around, span_of, stream_spans
from stepscope.tables import COLLECTIVES, FLOWS, GROUPS, STEPS


class TraceSupplement:
    """What is known about a rank in addition to its events; for a plain trace, only its groups."""

    def __init__(self, groups: Sequence[dict[str, Any]] = ()) -> None:
        self.groups = groups
        """Rows of `groups` that the recording lists."""
        self.own_threads: frozenset[str] = frozenset()
        """Threads of a recorder; their Python functions are left out."""

    def phases(self, steps: Steps, events: Events) -> pl.DataFrame | None:  # noqa: ARG002
        """`step`, `forward_start_ns`, `backward_end_ns`, `run_delay_ns` of steps, if known."""
        return None

    def recorded(self, steps: Steps) -> pl.Series | None:  # noqa: ARG002
        """Of each step whether its operators were recorded; None if that is the same for all."""
        return None

    def calls(self, found: pl.DataFrame, steps: Steps) -> pl.DataFrame:  # noqa: ARG002
        """All communication calls, given those that the events show."""
        return found


@dataclass(frozen=True)
class Written:
    """Facts about the whole rank from its events."""

    facts: Facts
    counts: DeviceCounts
    span: tuple[int, int] | None
    """First start and last end of its events, in ns."""


def write_events(path: Path, events: Events, sink: Sink, supplement: TraceSupplement) -> Written:
    """Write all tables that come from events, but for `ranks`; the events are used up.

    Args:
        path: What a user would call the recording, for issues.
        events: All events, complete.
        supplement: What else is known.
    """
    events.drop_own_frames(supplement.own_threads)
    device_events = events.rows("device")
    report_strays(events.drop_strays(), sink.issue, path)
    if not any(events.rows(name) for name in (*HOST_CLASSES, *DEVICE_CLASSES)):
        remedy = "Record again: the active steps were not reached, or nothing ran during them."
        sink.issue("error", path, "the trace has no timed events", remedy)
    lost_device = device_events > 0 and not events.rows("device")
    if lost_device:
        problem = f"none of the {device_events} device events has a usable time, so steps are unknown"
        remedy = "Update the profiler or the driver, then record again."
        sink.issue("error", path, problem, remedy, place=STEPS.name, lost=device_events)
    # without its device work a rank is not to be compared with others
    return _write_tables(path, events, sink, supplement, with_steps=not lost_device)


def _write_tables(path: Path, events: Events, sink: Sink, supplement: TraceSupplement, *, with_steps: bool) -> Written:
    facts = gather_facts(events)
    report_overlaps(facts.overlapping_steps, path, sink)
    groups = group_rows(events, supplement.groups)
    if groups is not None:
        sink.write(GROUPS, groups)
    _write_flows(events, sink)
    write_threads(events, sink)
    phases = supplement.phases(facts.steps, events)
    counts, calls = DeviceCounts(ranges=write_counter_ranges(events, path, sink)), Calls(supplement.groups, facts.steps)
    slices, memory = SliceWriter(events, facts.steps, facts.compiling, sink), MemoryWriter(sink)
    spans, recorded = [pl.DataFrame(schema=STREAM_SPANS)], [facts.recorded]
    carried: dict[str, pl.DataFrame] = {}
    number = 0
    for segment in ahead(segments(events, sink.scratch), sink.workers):
        segment.begin(carried, number)
        if segment.end_ns is not None:
            library.trim()  # of what was copied just now; Polars makes the rows in memory of its own
        tree = HostTree(segment)
        work = device_work(segment, tree, facts, events.base_ns, counts)
        carried = slices.write_host(segment, tree)
        number = slices.write_device(segment, segment.next_slice, work)
        if work is not None:
            write_kernels(work, sink)
            spans.append(stream_spans(work))
            recorded.append(span_of(work))
        calls.add(segment, tree, work)
        memory.add(segment, tree)
        segment.parts.clear()  # the next one needs the room
        del tree, work
    slices.finish()
    report(counts, sink, path)
    report_traced(slices.traced, path, sink)
    if (rows := supplement.calls(calls.found(), facts.steps)).height:
        rows = numbered(rows)
        write_splits(rows, sink)
        sink.write(COLLECTIVES, rows.drop("input_splits", "output_splits", strict=False))
    recording = around(recorded)
    if recording is not None and with_steps:
        of_windows = supplement.recorded(facts.steps)
        rows = step_rows(facts.steps, pl.concat(spans), recording, slices.worked, of_windows)
        report_rest(rows, of_windows, path, sink)
        if phases is not None:
            rows = rows.join(phases, on="step", how="left", maintain_order="left")
        sink.write(STEPS, rows)
    return Written(facts, counts, recording)


def _write_flows(events: Events, sink: Sink) -> None:
    """Write the flows from forward to backward operators; those to the device only repeat correlations."""

    def ends() -> Iterator[pl.DataFrame]:
        return map(events.located, events.frames("flow", ["phase", "id", "start_ns", "place"]))

    for rows in matched_flows("forward_backward", ends, events.rows("flow")):
        sink.write(FLOWS, rows)
