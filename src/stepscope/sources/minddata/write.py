"""All tables from the files of dataset profiling."""

from __future__ import annotations

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.minddata.batches import write_batches, write_get_next
from stepscope.sources.minddata.files import Clock, MinddataFiles
from stepscope.sources.minddata.pipeline import Operator, operator_rows, read_pipeline
from stepscope.sources.minddata.usage import read_usage, write_usage
from stepscope.tables import INPUT_PIPELINE, PIPELINE_OPERATORS


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
    if pipeline.operators:
        sink.write(PIPELINE_OPERATORS, operator_rows(pipeline, number))
    for operator in pipeline.operators.values():
        if operator.sizes:
            parent = pipeline.name(operator.parent)
            sink.write(INPUT_PIPELINE, _queue_samples(operator, parent, usage.times_ns, clock))
    pace_ns = None
    for source, file in (("device_queue", files.device_queue), ("dataset_iterator", files.iterator)):
        if file is not None:
            pace_ns = write_batches(source, file, clock, sink) or pace_ns
    for file, unit_ns in ((files.ai_cpu, 1000), (files.get_next, 1)):
        if file is not None:
            write_get_next(file, unit_ns, pace_ns, clock, sink)
    write_usage(usage, pipeline, clock, sink, with_host=with_host)
    return pipeline.count


def _queue_samples(operator: Operator, parent: str | None, times_ns: list[int], clock: Clock) -> pl.DataFrame:
    """Rows of the samples of an operator's queue, which have no times of their own.

    They were taken with those of the CPU (`times_ns`) if there are as many, else at the operator's own interval from
    the first of these; unknown if the run has no times.
    """
    count, every = len(operator.sizes), operator.interval_ns
    times: list[int | None] = [*times_ns[:count]]
    if len(times) < count:
        known = bool(times_ns) and every is not None
        times = [times_ns[0] + k * (every or 0) if known else None for k in range(count)]
    time_ns = pl.Series("time_ns", times, dtype=pl.Int64) + clock.shift_ns
    sizes = pl.Series("queue_size", operator.sizes, dtype=pl.Int64)
    return pl.DataFrame([time_ns, sizes]).with_columns(
        clock.steps(time_ns),
        operator=pl.lit(operator.name),
        parent=pl.lit(parent, pl.String),
        queue_capacity=pl.lit(operator.capacity, pl.Int64),
        workers=pl.lit(operator.workers, pl.Int32),
    )
