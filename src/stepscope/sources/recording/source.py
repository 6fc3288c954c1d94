"""The recording source: one raw recording of `stepscope.Profiler` -> tables of one rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from stepscope.recording_format.about import FORMAT
from stepscope.recording_format.layout import ABOUT, ASCEND, minddata_directories
from stepscope.recording_format.reading import is_recording
from stepscope.recording_format.rows import CSV_FILES
from stepscope.sources.base import PROFILER_REASONS, Found, Input, Sink
from stepscope.sources.recording.windows import listed_windows
from stepscope.sources.sinks import SilentSink

_FILES = (ABOUT, *(file.name for file in CSV_FILES))

_NO_WINDOW = "recorded without op_time, or stopped before the first window was finished"


class RecordingSource:
    """Reads what the recorder writes, of finished jobs, running ones and killed ones."""

    name = "recording"
    version = 16
    family = "recording"
    reasons: Mapping[str, str] = {
        **PROFILER_REASONS,
        "groups": "one process only",
        "stacks": "recorded without host_stack=True (`stepscope record --stacks`)",
        "operators": _NO_WINDOW,
        "kernels": f"a CPU-only job, or {_NO_WINDOW}",
        "collectives": "one process only, or recorded between two calls",
        **dict.fromkeys(("kernel_counters", "links", "transports"), "recorded on Ascend devices only"),
        "counters": "no GPU, or nvidia-ml-py is not installed",
        "pipeline_operators": "only MindSpore's dataset profiling records them",
        "input_pipeline": "no batch came from a supported data loader",
        "host_usage": "host usage was not sampled (needs psutil)",
    }
    own_tables = frozenset({"pipeline_operators"})

    def find(self, directory: Path, names: Sequence[str]) -> Found | None:
        """A directory with a `recording.json` of ours."""
        if ABOUT not in names or not is_recording(directory):
            return None
        files = [directory / name for name in _FILES if name in names]
        for window in listed_windows(directory, SilentSink().issue):  # damage is reported when it is read
            if window.kind == ASCEND:  # an export made later is not in the list
                from stepscope.sources.recording.ascend_windows import exports_of

                files += [file for export in exports_of(window) for file in export.files]
            else:
                files += [file for file in window.files if file.is_file()]
        for span in minddata_directories(directory):
            files += [file for file in sorted(span.iterdir()) if file.is_file()]
        return Found((Input(self.name, directory, tuple(dict.fromkeys(files))),))

    def sniff(self, file: Path, head: bytes) -> Input | None:
        """The `recording.json` itself is read as its directory."""
        if file.name != ABOUT or FORMAT.encode() not in head:
            return None
        found = self.find(file.parent, [entry.name for entry in file.parent.iterdir()])
        return None if found is None else found.inputs[0]

    def read(self, item: Input, sink: Sink) -> None:
        """See `read_recording`."""
        from stepscope.sources.recording.reading import read_recording

        read_recording(item, sink)
