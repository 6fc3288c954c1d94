"""What the times of an operation-level trace are: seconds since the start of the step; in some, of another unit or from
another start, which shows by their sizes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import polars as pl

_UNITS = ((3e8, "nanoseconds", 1e-9), (3e5, "microseconds", 1e-6), (1e4, "milliseconds", 1e-3), (-1.0, "seconds", 1.0))
_WHOLE_UNITS = (_UNITS[0], (1e4, "microseconds", 1e-6), _UNITS[3])
"""From which length of the median step on times are in a unit: no step takes hours, and steps of jobs that are recorded
by micro-batches take a third of a second at least."""


@dataclass(frozen=True)
class Times:
    """How to read times.

    Args:
        unit: Their unit.
        seconds: That in seconds.
        is_running: Starts are not counted from the start of the step, but on from step to step.
    """

    unit: str = "seconds"
    seconds: float = 1.0
    is_running: bool = False

    @property
    def problems(self) -> list[str]:
        """What is unusual, in words."""
        found = []
        if self.seconds != 1:
            found.append(f"times are taken for {self.unit}, as steps would take hours if they were seconds")
        if self.is_running:
            found.append("starts run on from step to step, so they are counted from the first one of each step")
        return found


def times_of(path: Path) -> Times:
    """How to read the times of a trace that has all columns that are needed."""
    info = path.stat()
    return _found(path, info.st_size, info.st_mtime_ns)


@lru_cache(maxsize=4)
def _found(path: Path, size: int, changed_ns: int) -> Times:  # noqa: ARG001 - they tell files of one name apart
    starts, lengths = (pl.col(name).cast(pl.Float64, strict=False) for name in ("start_ts", "duration"))
    rows = pl.scan_parquet(path, glob=False).select(
        pl.col("step").cast(pl.String, strict=False), start=starts, end=starts + lengths
    )
    steps = (
        rows.filter((pl.col("start") >= 0) & pl.col("start").is_finite() & pl.col("end").is_finite())
        .group_by("step")
        # Single operations may have times that cannot be.
        .agg(first=pl.col("start").min(), length=pl.col("end").quantile(0.9) - pl.col("start").min())
        .sort("first")
        .collect()
    )
    if steps.is_empty():
        return Times()
    typical = float(steps.select(pl.col("length").median()).item())
    # Nobody counts whole milliseconds.
    whole = pl.read_parquet_schema(path)["duration"].is_integer()
    _, unit, seconds = next(one for one in (_WHOLE_UNITS if whole else _UNITS) if typical >= one[0])
    # The first step of a job may well begin at 0.
    later = steps[1:] if steps.height > 1 else steps
    return Times(unit, seconds, bool(later.select((pl.col("first") > typical).mean()).item() > 1 / 2))
