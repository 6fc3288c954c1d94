"""The files of dataset profiling, and their clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stepscope.sources.side_files import NamedFiles, named


@dataclass(frozen=True)
class MinddataFiles(NamedFiles):
    """The files of one rank and one start-stop span; None if there is none.

    Args:
        pipeline_raw: `minddata_pipeline_raw_N.csv`: operators with the fill of their queues, as the profiler analysed.
        pipeline: `pipeline_profiling_N.json`: the same as the dataset wrote it.
        usage: `minddata_cpu_utilization_N.json`: CPU use of host, process and operators.
        device_queue: `device_queue_profiling_N.txt`: batches that went to the device's queue.
        iterator: `dataset_iterator_profiling_N.txt`: batches from an iterator, if there is no such queue.
        ai_cpu: `minddata_aicpu_N.txt`: what getting a batch cost the device (Ascend, us).
        get_next: `minddata_getnext_profiling_N.txt`: the same of a GPU (ns).
    """

    pipeline_raw: Path | None = named(r"minddata_pipeline_raw_.*\.csv")
    pipeline: Path | None = named(r"pipeline_profiling_.*\.json")
    usage: Path | None = named(r"minddata_cpu_utilization_.*\.json")
    device_queue: Path | None = named(r"device_queue_profiling_.*\.txt")
    iterator: Path | None = named(r"dataset_iterator_profiling_.*\.txt")
    ai_cpu: Path | None = named(r"minddata_aicpu_.*\.txt")
    get_next: Path | None = named(r"minddata_getnext_profiling_.*\.txt")

    @classmethod
    def within(cls, directory: Path) -> MinddataFiles:
        """The files in a directory of one rank; the first of several of a name."""
        return cls.among(sorted(directory.glob("*")))


@dataclass(frozen=True)
class Clock:
    """How times of the host's monotonic clock become those of the tables.

    Args:
        shift_ns: Added to them. 0 keeps the monotonic clock, as in classic profiles, where no other time relates to it.
        step_of: Gives the step of each time (after the shift). Without it a batch is a step of its own, numbered from
            1, and samples have none.
    """

    shift_ns: int = 0
    step_of: Callable[[pl.Series], pl.Series] | None = None

    def steps(self, times: pl.Series, numbers: pl.Series | None = None) -> pl.Series:
        """The steps of rows with these times and, if they are batches, of these numbers from 1."""
        if self.step_of is not None:
            return self.step_of(times).alias("step")
        known = pl.repeat(None, len(times), dtype=pl.Int32, eager=True) if numbers is None else numbers
        steps: pl.Series = known.cast(pl.Int32, strict=False)
        return steps.alias("step")
