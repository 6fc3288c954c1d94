"""The Kineto source: one trace file of torch.profiler -> tables of one rank."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from stepscope.sources.base import Input, Sink
from stepscope.sources.kineto import header as head
from stepscope.sources.kineto.collectives import Calls, group_rows
from stepscope.sources.kineto.device import DeviceCounts, device_work, tell, write_kernels
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.facts import Facts, gather_facts
from stepscope.sources.kineto.flows import write_flows
from stepscope.sources.kineto.host import HostTree
from stepscope.sources.kineto.layout import DEVICE_CLASSES, HOST_CLASSES, LAYOUT
from stepscope.sources.kineto.memory import MemoryWriter
from stepscope.sources.kineto.segments import segments
from stepscope.sources.kineto.slices import SliceWriter
from stepscope.sources.kineto.steps import step_rows
from stepscope.sources.plausible import STRAY, STRAY_REMEDY
from stepscope.sources.trace_events import TraceHeader, read_events
from stepscope.sources.windows import SPANS, around, span_of, step_spans
from stepscope.tables import COLLECTIVES, GROUPS, RANKS, STEPS

_TRACE_KEYS = re.compile(rb'"(traceEvents|schemaVersion|deviceProperties|distributedInfo)"\s*:')
_CATEGORIES = re.compile(
    rb'"cat"\s*:\s*"(cpu_op|user_annotation|python_function|kernel|cuda_runtime|hip_runtime|Operator|Kernel|Runtime)"'
)


class KinetoSource:
    """Reads what torch.profiler exports: PyTorch 1.8 and later, on CPU, CUDA and ROCm."""

    name = "kineto"
    version = 3

    def find(self, directory: Path, names: Sequence[str]) -> Input | None:  # noqa: ARG002
        """None: a Kineto recording is a file, never a directory."""
        return None

    def sniff(self, file: Path, head: bytes) -> Input | None:
        """A JSON object with trace events, or with the keys that Kineto puts before them."""
        if not head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
            return None
        keys = {match[1] for match in _TRACE_KEYS.finditer(head)}
        if not ({b"traceEvents", b"schemaVersion"} <= keys or _CATEGORIES.search(head) or len(keys) > 1):
            return None
        return Input(self.name, file, (file,))

    def read(self, item: Input, sink: Sink) -> None:
        """Read one trace.

        Raises:
            UnreadableInput: If the file cannot be opened or holds no list of events.
        """
        events = Events(sink.scratch)
        decoded = read_events(item.path, LAYOUT, report=sink.issue, workers=sink.workers)
        for batch in decoded:
            for name, frame in batch.frames.items():
                events.add(name, frame)
        header = decoded.header
        events.base_ns = head.base_ns(header.values)
        device_events = events.rows("device")
        if strays := events.drop_strays():
            sink.issue("warning", item.path, f"{strays} events {STRAY}; they are left out", STRAY_REMEDY, lost=strays)
        if not any(events.rows(name) for name in (*HOST_CLASSES, *DEVICE_CLASSES)):
            sink.issue(
                "error",
                item.path,
                "the trace has no timed events",
                "Record again: the profiler's active steps were not reached, or nothing ran while it was on.",
            )
        lost_device = device_events > 0 and not events.rows("device")
        if lost_device:
            sink.issue(
                "error",
                item.path,
                f"none of the {device_events} device events has a usable time, so steps cannot be told",
                "Update the profiler or the driver, then record again.",
                place=STEPS.name,
                lost=device_events,
            )
        # without its device work a rank is not to be compared with others
        _write_tables(item.path, header, events, sink, with_steps=not lost_device)


def _write_tables(path: Path, header: TraceHeader, events: Events, sink: Sink, *, with_steps: bool) -> None:
    facts = gather_facts(events)
    if facts.overlapping_steps:
        sink.issue(
            "warning",
            path,
            f"{facts.overlapping_steps} steps overlap the next one and are cut where it starts",
            "Call the profiler's step() once per step, from one thread.",
            place="steps",
        )
    groups = group_rows(events, header.values)
    if groups is not None:
        sink.write(GROUPS, groups)
    write_flows(events, sink)
    counts, calls = DeviceCounts(), Calls(header.values, facts.steps)
    slices, memory = SliceWriter(events, facts.steps, sink), MemoryWriter(sink)
    spans, recorded = [pl.DataFrame(schema=SPANS)], [facts.recorded]
    carried: dict[str, pl.DataFrame] = {}
    number = 0
    for segment in segments(events, sink.scratch):
        segment.carried, segment.first_slice = carried, number
        tree = HostTree(segment)
        work = device_work(segment, tree, facts, events.base_ns, counts)
        carried = slices.write_host(segment, tree)
        number = slices.write_device(segment, segment.next_slice, work)
        if work is not None:
            write_kernels(work, sink)
            spans.append(step_spans(work))
            recorded.append(span_of(work))
        calls.add(segment, tree, work)
        memory.add(segment, tree)
    slices.finish()
    tell(counts, sink, path)
    if (rows := calls.rows()) is not None:
        sink.write(COLLECTIVES, rows)
    recording = around(recorded)
    if recording is not None and with_steps:
        sink.write(STEPS, step_rows(facts.steps, pl.concat(spans), recording))
    sink.write(RANKS, _rank_row(path, header, facts, counts, recording))


def _rank_row(
    path: Path, header: TraceHeader, facts: Facts, counts: DeviceCounts, recording: tuple[int, int] | None
) -> pl.DataFrame:
    values = header.values
    rank, origin = head.rank_of(values, path)
    info = head.distributed(values)
    host = values.get("host_name")
    backend = info.get("backend")
    row = {
        "rank": rank,
        "rank_origin": origin,
        "world_size": head.small_number(info.get("world_size")),
        "host": host if isinstance(host, str) else None,
        "process": facts.process,
        "device_kind": head.device_kind(values, counts.found > 0),
        "device": counts.main_device,
        "device_name": head.device_name(values, counts.main_device),
        "framework": "pytorch",
        "format": KinetoSource.name,
        "backend": backend if isinstance(backend, str) else None,
        "base_ns": head.base_ns(values),
        "start_ns": recording[0] if recording else None,
        "end_ns": recording[1] if recording else None,
        "options": head.options_json(values),
    }
    return RANKS.frame(**{key: [value] for key, value in row.items()})
