"""What our own tables say of each rank, for comparison with what a client says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    calls_ns: tuple[int, ...] = ()
    """Communication calls of each step together; empty without any."""
    waits_ns: tuple[int, ...] = ()
    """Of these, waiting for other ranks, where all of it is known."""
    received_bytes: tuple[int, ...] = ()
    """By receives from known ranks, in each step, where waiting was not all that is known of them."""


def recorded_run(directory: Path) -> Run | None:
    """The run as recorded, if the raw data lies in `directory` (one with `profiler` in it)."""
    recording = directory / "profiler" / "recording"
    return open_run(recording) if recording.is_dir() else None


def facts_of(run: Run) -> dict[int, Facts]:
    """Figures of each rank; `run` has all ranks of the job."""
    return {rank.rank: _facts(run.select(ranks=[rank.rank])) for rank in run.ranks}


def _facts(run: Run) -> Facts:
    steps = run.table("steps").filter(pl.col("window") != "recording").collect() if run.has("steps") else None
    told: dict[str, Any] = {}
    for table, spent in (("operators", pl.coalesce("self_ns", "duration_ns")), ("kernels", pl.col("duration_ns"))):
        if run.has(table):
            count, total = run.table(table).select(pl.len(), spent.sum()).collect().row(0)
            told |= {table: count, f"{table}_ns": total}
    lengths = () if steps is None else tuple((steps["end_ns"] - steps["start_ns"]).to_list())
    numbers = [] if steps is None else steps["step"].to_list()
    if run.has("collectives"):
        told |= _calls(run, numbers)
    return Facts(steps_ns=lengths, **told)


def _calls(run: Run, steps: list[int]) -> dict[str, tuple[int, ...]]:
    """What communication took in each step, from the calls that were matched over all ranks."""
    peers = run.table("collectives").select("collective", "peer")
    calls = run.analyse("arrival").lazy().join(peers, on="collective").filter(pl.col("step").is_in(steps)).collect()
    length = pl.col("end_ns") - pl.col("start_ns")
    received = (
        (pl.col("operation") == "recv") & pl.col("peer").is_not_null() & (length > pl.col("wait_ns").fill_null(0))
    )
    sums = calls.group_by("step").agg(
        calls_ns=length.sum(),
        waits_ns=pl.col("wait_ns").sum(),
        received_bytes=pl.col("size_bytes").filter(received).sum(),
    )
    every = pl.DataFrame({"step": steps}, schema={"step": pl.Int32}).join(
        sums, on="step", how="left", maintain_order="left"
    )
    return {name: tuple(every[name].fill_null(0).to_list()) for name in every.columns if name != "step"}
