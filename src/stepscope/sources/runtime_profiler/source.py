"""The reader of MindSpore's runtime profiler."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from stepscope.paths import natural
from stepscope.sources.base import PROFILER_REASONS, Found, Input, Sink

_NAME = re.compile(r"RuntimeProfiler(Detail|Json|Summary)(\d+)\.(?:csv|json)")
_FIRST_LINE = re.compile(rb"^\[Step:\d+,? step_time:\d+ns, module_total_time:\d+ns\]\s*\n\s*(?:module|stage):")


class RuntimeProfilerSource:
    """Reads what the runtime profiler wrote of one process."""

    name = "runtime_profiler"
    version = 2
    family = "runtime"
    reasons: Mapping[str, str] = {
        **PROFILER_REASONS,
        **dict.fromkeys(("kernels", "allocations", "memory_curve", "stacks"), "it records host ranges only"),
    }
    own_tables = frozenset({"host_events"})

    def find(self, directory: Path, names: Sequence[str]) -> Found | None:
        """A directory with its files: an input for each process, which share the number in their names."""
        files: dict[str, list[Path]] = defaultdict(list)
        rest = []
        for name in names:
            if match := _NAME.fullmatch(name):
                files[match[2]].append(directory / name)
            else:
                rest.append(name)
        found = [
            Input(self.name, directory, tuple(sorted(files[stamp])), stamp if len(files) > 1 else "")
            for stamp in sorted(files, key=natural)
        ]
        inputs = tuple(item for item in found if {"Detail", "Json"} & kinds_of(item.files).keys())
        return Found(inputs, tuple(rest)) if inputs else None

    def sniff(self, file: Path, head: bytes) -> Input | None:
        """A detail by its first lines; the other files by their names."""
        match = _NAME.fullmatch(file.name)
        known = match is not None and match[1] != "Summary"
        return Input(self.name, file, (file,)) if known or _FIRST_LINE.match(head) else None

    def read(self, item: Input, sink: Sink) -> None:
        """See `read_events`."""
        from stepscope.sources.runtime_profiler.reading import read_events

        read_events(item, kinds_of(item.files), sink)


def kinds_of(files: Sequence[Path]) -> dict[str, Path]:
    """The files of a process by the kind that their names say: `Detail`, `Json` or `Summary`."""
    return {match[1]: file for file in files if (match := _NAME.fullmatch(file.name))}
