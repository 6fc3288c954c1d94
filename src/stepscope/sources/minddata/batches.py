"""`device_queue_profiling_N.txt`, `dataset_iterator_profiling_N.txt`: what each batch cost on the host.

Four lines a batch, five whole numbers each, without a header: `type extra batch value time`. Type 0 is a cost in ms, of
getting the batch from the pipeline (extra 0), of pushing it (1) and of all of it (2); type 1 is the queue before the
device, its capacity (extra) and its fill (value). The time is that of the host's monotonic clock in ms.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.minddata.files import Clock
from stepscope.sources.minddata.lines import numbers_of, report_damaged
from stepscope.sources.side_files import report_unreadable
from stepscope.tables import INPUT_PIPELINE

_MS = 1_000_000
_FIELDS = ("type", "extra", "batch", "value", "time")
_COSTS = {0: "get_ns", 1: "push_ns", 2: "duration_ns"}


def write_batches(operator: str, file: Path, clock: Clock, sink: Sink) -> int | None:
    """Write the batches of one file.

    Args:
        operator: What the rows are called: `device_queue` or `dataset_iterator`.
        file: The file.
        clock: Converts its times to those of the table.
        sink: Takes the rows and issues.

    Returns:
        The usual time from one batch to the next in ns; None if unknown.
    """
    try:
        lines = numbers_of(file, len(_FIELDS))
    except OSError as error:
        report_unreadable(error, file, sink)
        return None
    report_damaged(file, lines, sink)
    batches = _batches(lines.values.rename(dict(zip(lines.values.columns, _FIELDS, strict=True))))
    if not batches.height:
        return None
    # several windows of one profile go on counting, and a device's queue may begin with any number
    number = batches["batch"] - batches["batch"].min() + 1
    time_ns = batches["time_ns"] + clock.shift_ns
    # Times are cut off to whole ms, and a batch is taken where a step begins: the latest moment that it may be counts.
    steps = clock.steps(time_ns + _MS - 1, number)
    sink.write(INPUT_PIPELINE, batches.with_columns(time_ns, steps, operator=pl.lit(operator)))
    return usual_pace(batches["time_ns"])


def usual_pace(times: pl.Series) -> int | None:
    """The median difference of times in ns; None for fewer than three, or if they do not go on."""
    median = times.sort().diff().drop_nulls().median() if len(times) > 2 else None
    return int(median) if isinstance(median, (int, float)) and median > 0 else None


def _batches(lines: pl.DataFrame) -> pl.DataFrame:
    """A row a batch; the second time that a batch has the same line, it is another one of that number."""
    is_queue = pl.col("type") == 1
    lines = lines.filter(is_queue | ((pl.col("type") == 0) & pl.col("extra").is_in(list(_COSTS))))
    part = pl.when(is_queue).then(-1).otherwise("extra")
    costs = {name: (pl.col("value") * _MS).filter(pl.col("part") == extra).first() for extra, name in _COSTS.items()}
    queue = pl.col("part") == -1
    return (
        lines.with_columns(part=part)
        .with_columns(again=pl.int_range(pl.len()).over("batch", "part"))
        .group_by("batch", "again", maintain_order=True)
        .agg(
            (pl.col("time").max() * _MS).alias("time_ns"),
            pl.col("value").filter(queue).first().alias("queue_size"),
            pl.col("extra").filter(queue).first().alias("queue_capacity"),
            **costs,
        )
        .drop("again")
    )
