"""The source of light records: the files of one rank and process -> tables of one rank."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from stepscope.recording_format.light import GROUP_FILE, WORKER_FILE, is_record_name
from stepscope.sources.base import Found, Input, Sink
from stepscope.sources.light.processes import files_by_process

_BEGINS = re.compile(rb'\s*\{\s*"Kind"\s*:\s*\d+\s*,\s*"(Flag|Start)"\s*:')
_HEAD = 4096


class LightSource:
    """Reads the records of light tracing, of our workers and of TaskD, also while the job appends to them."""

    name = "light"
    version = 3
    family = "light"
    reasons: Mapping[str, str] = {
        **dict.fromkeys(
            ("operators", "kernels", "allocations", "memory_curve", "flows", "stacks", "counters", "kernel_counters"),
            "light tracing records steps, forward passes, batches, checkpoints and communication only",
        ),
        **dict.fromkeys(("links", "transports"), "light tracing does not record links"),
        "collectives": "communication was not switched on (`stepscope live switch communication=on`)",
        "groups": "one process only, or no parallel_group.json was written",
        "input_pipeline": "batches were not switched on, or no supported data loader was used",
        "pipeline_operators": "only MindSpore's dataset profiling records them",
        "host_usage": "light tracing does not sample the host",
    }
    own_tables = frozenset({"light_ranges"})

    def find(self, directory: Path, names: Sequence[str]) -> Found | None:
        """A directory with files named by numbers that begin with a record: that of a rank, `<task>/<rank>`.

        Each process that has written there is a recording of its own, since it counts its steps from 1.
        """
        numbered = sorted((name for name in names if is_record_name(name)), key=int)
        records = [directory / name for name in numbered if _begins_with_record(directory / name)]
        if not records:
            return None
        sides = [directory / name for name in (GROUP_FILE, WORKER_FILE) if name in names]
        processes = files_by_process(records)
        inputs = tuple(
            Input(self.name, directory, (*files, *sides), "" if len(processes) == 1 else f"process {process}")
            for process, files in processes.items()
        )
        taken = {file.name for file in (*records, *sides)}
        return Found(inputs, tuple(name for name in names if name not in taken))

    def sniff(self, file: Path, head: bytes) -> Input | None:
        """One record file by itself."""
        return Input(self.name, file, (file,)) if _BEGINS.match(head) else None

    def read(self, item: Input, sink: Sink) -> None:
        """See `read_light`."""
        from stepscope.sources.light.reading import read_light

        read_light(item, sink)


def _begins_with_record(file: Path) -> bool:
    try:
        if not file.is_file():
            return False
        with file.open("rb") as text:
            return _BEGINS.match(text.read(_HEAD)) is not None
    except OSError:
        return False
