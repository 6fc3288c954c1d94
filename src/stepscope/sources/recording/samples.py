"""What was sampled, and the batches that the training loop took: `{host,device,batches}.csv` and `minddata/`."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.recording_format.about import About
from stepscope.recording_format.layout import minddata_directories
from stepscope.recording_format.rows import BATCHES, DEVICE, HOST
from stepscope.sources.base import Sink
from stepscope.sources.kineto.steps import Steps
from stepscope.sources.minddata.files import Clock, MinddataFiles
from stepscope.sources.minddata.usage import first_sample_ns
from stepscope.sources.minddata.write import write_minddata as write_files
from stepscope.sources.recording.lines import read_all_rows, read_rows
from stepscope.tables import COUNTERS, HOST_USAGE, INPUT_PIPELINE

_TOTALS = {
    "user_ratio": "user_ns",
    "system_ratio": "system_ns",
    "io_ratio": "io_wait_ns",
    "idle_ratio": "idle_ns",
}
_COUNTS = ("read_bytes", "written_bytes", "context_switches")
_AS_THEY_ARE = ("runnable", "threads", "rss_bytes", "uss_bytes", "available_bytes", "total_bytes")
_MOST_PROCESSORS = 2**16
"""More than any machine has: what is beyond is damage."""


def write_host_samples(about: About, sink: Sink) -> bool:
    """Write the rows of `host_usage` that `host.csv` gives; whether there are any."""
    rows = read_all_rows(about.directory, HOST, sink.issue)
    if not rows.height:
        return False
    known = rows["processors"].filter(rows["processors"].is_between(1, _MOST_PROCESSORS))
    processors = int(known.max()) if known.len() else None
    sink.write(HOST_USAGE, _usage(rows, processors).with_columns(pl.col("time_ns") + about.shift_ns))
    return True


def _usage(rows: pl.DataFrame, processors: int | None) -> pl.DataFrame:
    """Samples with differences of the counters; a counter that falls belongs to another process of the same number."""
    series = ["scope", "pid"]

    def since_last(column: str) -> pl.Expr:
        change = pl.col(column) - pl.col(column).shift(1).over(series)
        return pl.when(change >= 0).then(change)

    time_ns = since_last("time_ns")
    # as counted by the machine, otherwise elapsed time of all processors
    counted = pl.sum_horizontal(since_last(total) for total in _TOTALS.values())
    capacity = pl.when(pl.col("scope") == "host").then(counted).otherwise(time_ns * processors)
    shares = {
        name: pl.when(capacity > 0).then((since_last(total) / capacity).clip(0, 1)) for name, total in _TOTALS.items()
    }
    return rows.sort("time_ns", maintain_order=True).select(
        *("time_ns", "scope", "name", *_AS_THEY_ARE),
        process=pl.when(pl.col("scope") != "host").then("pid"),
        processors=pl.lit(processors, pl.Int32),
        **shares,
        **{name: since_last(name) for name in _COUNTS},
    )


def write_device_samples(about: About, sink: Sink) -> None:
    """Write the rows of `counters`."""
    for rows in read_rows(about.directory, DEVICE, sink.issue):
        device = pl.col("device").cast(pl.Int32, strict=False)
        sink.write(COUNTERS, rows.drop_nulls("value").with_columns(pl.col("time_ns") + about.shift_ns, device))


def write_batches(about: About, steps: Steps, sink: Sink) -> None:
    """Write the rows of `input_pipeline` that the training loop's own batches make."""
    for rows in read_rows(about.directory, BATCHES, sink.issue):
        workers = pl.col("workers").cast(pl.Int32, strict=False)
        shifted = rows.with_columns(pl.col("time_ns") + about.shift_ns, workers)
        named = shifted.rename({"pipeline": "operator", "wait_ns": "duration_ns"})
        sink.write(INPUT_PIPELINE, named.with_columns(step=steps.of(shifted["time_ns"])))


def write_minddata(about: About, steps: Steps, sink: Sink, *, with_host: bool) -> None:
    """Write what `minddata/` gives of `input_pipeline`, `pipeline_operators` and `host_usage`.

    MindSpore's dataset profiling writes a directory for each start-stop span. `with_host` writes its samples of host
    and process too, which the recorder's own usually replace.
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
