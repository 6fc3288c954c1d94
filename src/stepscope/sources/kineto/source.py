"""The Kineto source: one trace file of torch.profiler -> tables of one rank."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from stepscope.json_values import small_number
from stepscope.sources.base import Found, Input, Sink
from stepscope.sources.kineto import header as head
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.layout import LAYOUT
from stepscope.sources.kineto.tables import TraceSupplement, Written, write_events
from stepscope.sources.missing import PROFILER
from stepscope.sources.trace_events import TraceHeader, read_events
from stepscope.tables import RANKS

_TRACE_KEYS = re.compile(rb'"(traceEvents|schemaVersion|deviceProperties|distributedInfo)"\s*:')
_CATEGORIES = re.compile(
    rb'"cat"\s*:\s*"(cpu_op|user_annotation|python_function|kernel|cuda_runtime|hip_runtime|Operator|Kernel|Runtime)"'
)


class KinetoSource:
    """Reads what torch.profiler exports: PyTorch 1.8 and later, on CPU, CUDA and ROCm."""

    name = "kineto"
    version = 8
    family = "kineto"
    reasons: Mapping[str, str] = {
        **PROFILER,
        "groups": "one process only, or written by an old PyTorch",
        "kernels": "a CPU-only job, or recorded without accelerator activities",
        "collectives": "one process only, or recorded between two calls",
        **dict.fromkeys(
            ("kernel_counters", "links", "transports", "counters", "input_pipeline", "host_usage"),
            "PyTorch traces do not contain them",
        ),
    }
    own_tables = frozenset[str]()

    def find(self, directory: Path, names: Sequence[str]) -> Found | None:  # noqa: ARG002
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
        decoded = read_events(item.path, LAYOUT, report=sink.issue, workers=sink.workers, advance=sink.advance)
        for batch in decoded:
            for name, frame in batch.frames.items():
                events.add(name, frame)
        header = decoded.header
        events.base_ns = head.base_ns(header.values)
        written = write_events(item.path, events, sink, TraceSupplement(head.groups_of(header.values)))
        sink.write(RANKS, _rank_row(item.path, header, written))


def _rank_row(path: Path, header: TraceHeader, written: Written) -> pl.DataFrame:
    counts, span = written.counts, written.span
    values = header.values
    rank, origin = head.rank_of(values, path)
    info = head.distributed(values)
    host = values.get("host_name")
    backend = info.get("backend")
    row = {
        "rank": rank,
        "rank_origin": origin,
        "world_size": small_number(info.get("world_size")),
        "host": host if isinstance(host, str) else None,
        "process": written.facts.process,
        "device_kind": head.device_kind(values, counts.used_device),
        "device": counts.main_device,
        "device_name": head.device_name(values, counts.main_device),
        "framework": "pytorch",
        "format": KinetoSource.name,
        "backend": backend if isinstance(backend, str) else None,
        "base_ns": head.base_ns(values),
        "start_ns": span[0] if span else None,
        "end_ns": span[1] if span else None,
        "options": head.options_json(values),
    }
    return RANKS.unchecked(**{key: [value] for key, value in row.items()})
