"""All tables from the files of dataset profiling."""

from __future__ import annotations

from stepscope.sources.base import Sink
from stepscope.sources.minddata.batches import write_batches
from stepscope.sources.minddata.files import Clock, MinddataFiles
from stepscope.sources.minddata.get_next import write_get_next
from stepscope.sources.minddata.pipeline import read_pipeline
from stepscope.sources.minddata.queues import write_operators
from stepscope.sources.minddata.usage import read_usage, write_usage


def write_minddata(files: MinddataFiles, clock: Clock, sink: Sink, *, with_host: bool = True, number: int = 0) -> int:
    """Write what the files give of `input_pipeline`, `pipeline_operators` and `host_usage`.

    Args:
        files: The files.
        clock: Converts their times to those of the tables.
        sink: Takes the rows and issues.
        with_host: Whether to write samples of host and process too; False if a better sampler did.
        number: Number of the first pipeline.

    Returns:
        How many pipelines there were.
    """
    usage = read_usage(files.usage, sink)
    pipeline = read_pipeline(files.pipeline_raw, files.pipeline, sink)
    write_operators(pipeline, usage, clock, sink, number)
    pace_ns = None
    for operator, file in (("device_queue", files.device_queue), ("dataset_iterator", files.iterator)):
        if file is not None:
            pace_ns = write_batches(operator, file, clock, sink) or pace_ns
    for file, unit_ns in ((files.ai_cpu, 1000), (files.get_next, 1)):
        if file is not None:
            write_get_next(file, unit_ns, pace_ns, clock, sink)
    write_usage(usage, pipeline, clock, sink, with_host=with_host)
    return pipeline.count
