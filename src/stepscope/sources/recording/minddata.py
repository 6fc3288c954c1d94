"""`minddata/`: what MindSpore's dataset profiling wrote, one directory a start-stop span."""

from __future__ import annotations

from pathlib import Path

from stepscope.recording_format.about import About
from stepscope.recording_format.layout import minddata_directories
from stepscope.sources.base import Sink
from stepscope.sources.kineto.steps import Steps
from stepscope.sources.minddata.files import Clock, MinddataFiles
from stepscope.sources.minddata.usage import first_sample_ns
from stepscope.sources.minddata.write import write_minddata as write_files


def write_minddata(about: About, steps: Steps, sink: Sink, *, with_host: bool) -> None:
    """Write what the files give of `input_pipeline`, `pipeline_operators` and `host_usage`.

    Args:
        about: The recording.
        steps: Its steps.
        sink: Takes the rows.
        with_host: Whether to write samples of host and process too, which the recorder's own usually are.
    """
    pipelines = 0
    for number, directory in enumerate(minddata_directories(about.directory)):
        files = MinddataFiles.within(directory)
        shift_ns = _shift(about, number, files, directory, sink)
        if shift_ns is not None:
            clock = Clock(shift_ns, steps.of)
            pipelines += write_files(files, clock, sink, with_host=with_host, number=pipelines)


def _shift(about: About, number: int, files: MinddataFiles, directory: Path, sink: Sink) -> int | None:
    """Offset from monotonic times to those of the events; from the start of the span if it was not recorded."""
    if about.epoch_shift_ns is not None:
        return about.epoch_shift_ns + about.shift_ns
    first_ns = first_sample_ns(files.usage)
    if first_ns is not None and number < len(about.closed_spans):
        problem = "dataset times are accurate to one sampling interval only: the recorder did not relate the clocks"
        sink.issue("note", directory, problem, "Record with a newer stepscope if you need better")
        return about.closed_spans[number][0] - first_ns + about.shift_ns
    problem = "the dataset's files use a clock with unknown offset to the recording; they are left out"
    sink.issue("warning", directory, problem, "Record again with a newer stepscope")
    return None
