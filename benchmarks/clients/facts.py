"""What our own tables say of each rank, for comparison with what a client says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stepscope import Run, open_run


@dataclass(frozen=True)
class Facts:
    """Figures of one rank; None where the recording has nothing of the kind."""

    steps_ns: tuple[int, ...] = ()
    """Length of each step."""
    operators: int | None = None
    operators_ns: int | None = None
    """Their self times."""
    kernels: int | None = None
    kernels_ns: int | None = None


def recorded_run(directory: Path) -> Run | None:
    """The run as recorded, if the raw data lies in `directory` (one with `profiler` in it)."""
    recording = directory / "profiler" / "recording"
    return open_run(recording) if recording.is_dir() else None


def facts_of(run: Run) -> dict[int, Facts]:
    """Figures of each rank."""
    return {rank.rank: _facts(run.select(ranks=[rank.rank])) for rank in run.ranks}


def _facts(run: Run) -> Facts:
    steps = run.table("steps").filter(pl.col("window") != "recording").collect() if run.has("steps") else None
    told: dict[str, int] = {}
    for table, spent in (("operators", pl.coalesce("self_ns", "duration_ns")), ("kernels", pl.col("duration_ns"))):
        if run.has(table):
            count, total = run.table(table).select(pl.len(), spent.sum()).collect().row(0)
            told |= {table: count, f"{table}_ns": total}
    lengths = () if steps is None else tuple((steps["end_ns"] - steps["start_ns"]).to_list())
    return Facts(steps_ns=lengths, **told)
