"""The Kineto source: one trace file of torch.profiler -> tables of one rank."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from stepscope.sources.base import PROFILER_REASONS, Found, Input, Sink

_TRACE_KEYS = re.compile(rb'"(traceEvents|schemaVersion|deviceProperties|distributedInfo)"\s*:')
_CATEGORIES = re.compile(
    rb'"cat"\s*:\s*"(cpu_op|user_annotation|python_function|kernel|cuda_runtime|hip_runtime|Operator|Kernel|Runtime)"'
)


class KinetoSource:
    """Reads what torch.profiler exports: PyTorch 1.8 and later, on CPU, CUDA and ROCm."""

    name = "kineto"
    version = 14
    family = "kineto"
    reasons: Mapping[str, str] = {
        **PROFILER_REASONS,
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
        """See `read_trace`."""
        from stepscope.sources.kineto.reading import read_trace

        read_trace(item, sink)
