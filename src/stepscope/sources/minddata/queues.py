"""Rows of `pipeline_operators`, and those of `input_pipeline` that sample the operators' queues."""

from __future__ import annotations

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.minddata.files import Clock
from stepscope.sources.minddata.pipeline import Operator, Pipeline, operator_rows
from stepscope.sources.minddata.usage import Usage
from stepscope.tables import INPUT_PIPELINE, PIPELINE_OPERATORS


def write_operators(pipeline: Pipeline, usage: Usage, clock: Clock, sink: Sink, first: int) -> None:
    """Write operators and the samples of their queues.

    Args:
        pipeline: The operators.
        usage: When samples of the same run were taken: the queues have no times of their own.
        clock: Converts its times to those of the table.
        sink: Takes the rows.
        first: Number of the first pipeline.
    """
    if pipeline.operators:
        sink.write(PIPELINE_OPERATORS, operator_rows(pipeline, first))
    for operator in pipeline.operators.values():
        if operator.sizes:
            sink.write(INPUT_PIPELINE, _samples(operator, pipeline, usage, clock))


def _samples(operator: Operator, pipeline: Pipeline, usage: Usage, clock: Clock) -> pl.DataFrame:
    time_ns = _times(operator, usage) + clock.shift_ns
    sizes = pl.Series("queue_size", operator.sizes, dtype=pl.Int64)
    return pl.DataFrame([time_ns, sizes]).with_columns(
        clock.steps(time_ns),
        operator=pl.lit(operator.name),
        parent=pl.lit(pipeline.name(operator.parent), pl.String),
        queue_capacity=pl.lit(operator.capacity, pl.Int64),
        workers=pl.lit(operator.workers, pl.Int32),
    )


def _times(operator: Operator, usage: Usage) -> pl.Series:
    """When the samples of a queue were taken: with those of the CPU if there are as many, else at its own interval
    from the first of these; null if the run has no times."""
    count = len(operator.sizes)
    times: list[int | None] = [*usage.times_ns]
    if len(times) < count:
        every = operator.interval_ns
        first = usage.times_ns[0] if usage.times_ns else None
        times = [None if first is None or every is None else first + k * every for k in range(count)]
    return pl.Series("time_ns", times[:count], dtype=pl.Int64)
