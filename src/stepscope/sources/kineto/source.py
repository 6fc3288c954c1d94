"""The Kineto source: one trace file of torch.profiler -> tables of one rank."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from stepscope.sources.base import Input, Sink
from stepscope.sources.kineto import header as head
from stepscope.sources.kineto.collectives import collective_rows, group_rows
from stepscope.sources.kineto.device import device_work, write_kernels
from stepscope.sources.kineto.host import HostTree
from stepscope.sources.kineto.layout import DEVICE_CLASSES, HOST_CLASSES, LAYOUT
from stepscope.sources.kineto.memory import write_memory
from stepscope.sources.kineto.slices import write_device, write_host
from stepscope.sources.kineto.spool import Spool
from stepscope.sources.kineto.steps import find_steps, step_rows
from stepscope.sources.plausible import STRAY, STRAY_REMEDY
from stepscope.sources.trace_events import TraceHeader, read_events
from stepscope.tables import COLLECTIVES, FLOWS, GROUPS, RANKS, STEPS

_TRACE_KEYS = re.compile(rb'"(traceEvents|schemaVersion|deviceProperties|distributedInfo)"\s*:')
_CATEGORIES = re.compile(
    rb'"cat"\s*:\s*"(cpu_op|user_annotation|python_function|kernel|cuda_runtime|hip_runtime|Operator|Kernel|Runtime)"'
)


class KinetoSource:
    """Reads what torch.profiler exports: PyTorch 1.8 and later, on CPU, CUDA and ROCm."""

    name = "kineto"
    version = 2

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
        spool = Spool(sink.scratch)
        events = read_events(item.path, LAYOUT, report=sink.issue, workers=sink.workers)
        for batch in events:
            for name, frame in batch.frames.items():
                spool.add(name, frame)
        spool.base_ns = head.base_ns(events.header.values)
        device_events = spool.rows("device")
        if strays := sum(spool.drop_strays().values()):
            sink.issue("warning", item.path, f"{strays} events {STRAY}; they are left out", STRAY_REMEDY, lost=strays)
        if not any(spool.rows(name) for name in (*HOST_CLASSES, *DEVICE_CLASSES)):
            sink.issue(
                "error",
                item.path,
                "the trace has no timed events",
                "Record again: the profiler's active steps were not reached, or nothing ran while it was on.",
            )
        lost_device = device_events > 0 and not spool.rows("device")
        if lost_device:
            sink.issue(
                "error",
                item.path,
                f"none of the {device_events} device events has a usable time, so steps cannot be told",
                "Update the profiler or the driver, then record again.",
                place=STEPS.name,
                lost=device_events,
            )
        _write_tables(item.path, events.header, spool, sink, with_steps=not lost_device)


def _write_tables(path: Path, header: TraceHeader, spool: Spool, sink: Sink, *, with_steps: bool) -> None:
    values = header.values
    tree = HostTree(spool)
    steps, overlapping = find_steps(spool)
    if overlapping:
        sink.issue(
            "warning",
            path,
            f"{overlapping} steps overlap the next one and are cut where it starts",
            "Call the profiler's step() once per step, from one thread.",
            place="steps",
        )
    work = device_work(spool, tree, steps, sink, path)
    recording = _recording(spool, work)
    if recording is not None and with_steps:  # without its device work a rank is not to be compared with others
        sink.write(STEPS, step_rows(steps, work, recording))
    sink.write(RANKS, _rank_row(path, header, spool, work, recording))
    groups = group_rows(spool, values)
    if groups is not None:
        sink.write(GROUPS, groups)
    write_host(spool, tree, steps, sink)
    write_device(spool, tree, work, sink)
    if work is not None:
        write_kernels(work, sink)
    calls = collective_rows(spool, tree, steps, work, values)
    if calls is not None:
        sink.write(COLLECTIVES, calls)
    write_memory(spool, tree, sink)
    _write_flows(spool, sink)


def _recording(spool: Spool, work: pl.DataFrame | None) -> tuple[int, int] | None:
    """First start and last end of all ranges, without the profiler's own span."""
    ends = pl.col("start_ns") + pl.col("duration_ns")
    own = pl.col("category").str.to_lowercase() == "trace"
    spans = [
        frame.filter(~own.fill_null(False)).select(first=pl.col("start_ns").min(), last=ends.max())
        for name in HOST_CLASSES
        for frame in spool.frames(name, ["start_ns", "duration_ns", "category"])
    ]
    if work is not None:
        spans.append(work.select(first=pl.col("start_ns").min(), last=ends.max()))
    if not spans:
        return None
    first, last = pl.concat(spans).select(pl.min("first"), pl.max("last")).row(0)
    return None if first is None else (first, last)


def _rank_row(
    path: Path,
    header: TraceHeader,
    spool: Spool,
    work: pl.DataFrame | None,
    recording: tuple[int, int] | None,
) -> pl.DataFrame:
    values = header.values
    rank, origin = head.rank_of(values, path)
    info = head.distributed(values)
    device = None if work is None else work["device"].drop_nulls().mode().sort().first()
    host = values.get("host_name")
    backend = info.get("backend")
    row = {
        "rank": rank,
        "rank_origin": origin,
        "world_size": head.small_number(info.get("world_size")),
        "host": host if isinstance(host, str) else None,
        "process": _process(spool),
        "device_kind": head.device_kind(values, work is not None),
        "device": device,
        "device_name": head.device_name(values, device if isinstance(device, int) else None),
        "framework": "pytorch",
        "format": KinetoSource.name,
        "backend": backend if isinstance(backend, str) else None,
        "base_ns": spool.base_ns,
        "start_ns": recording[0] if recording else None,
        "end_ns": recording[1] if recording else None,
        "options": head.options_json(values),
    }
    return RANKS.frame(**{key: [value] for key, value in row.items()})


def _process(spool: Spool) -> int | None:
    """The process of most operators."""
    for name in ("operator", "annotation", "runtime"):
        for frame in spool.frames(name, ["start_ns", "process"]):
            found = frame["process"].drop_nulls().mode().sort().first()
            return head.whole_number(found)
    return None


def _write_flows(spool: Spool, sink: Sink) -> None:
    """Arrows from forward to backward operators; those to the device only repeat correlations."""
    arrows = spool.whole("flow", ["phase", "id", "start_ns", "thread"])
    if arrows is None:
        return
    tails = arrows.filter(pl.col("phase") == "s").select(flow="id", from_ns="start_ns", from_thread="thread")
    heads = arrows.filter(pl.col("phase") == "f").select(flow="id", to_ns="start_ns", to_thread="thread")
    joined = (
        tails.drop_nulls("flow")
        .unique("flow", keep="first", maintain_order=True)
        .join(heads.unique("flow", keep="first"), on="flow", how="inner", maintain_order="left")
    )
    sink.write(FLOWS, joined.with_columns(kind=pl.lit("forward_backward")))
