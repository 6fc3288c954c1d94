"""When a rank was computing, communicating, moving memory, loading data...: the ranges that all splits of time use.

On an accelerator the first three are its kernels. In a CPU-only recording, computing is the framework's operators on
any thread, communication is the collective work of the backend (e.g. `gloo:*`) and the calls that start or await it.
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from stepscope.analysis.base import analysis, rank_of
from stepscope.analysis.marks import KINDS as MARKS
from stepscope.analysis.marks import merged
from stepscope.errors import Unavailable

WORK = ("computing", "communication", "memory")
KINDS = (*WORK, *MARKS)

COMMUNICATION_CALL = r"^(c10d::|gloo:|nccl:|hccl:|mpi:|ucc:|record_param_comms|_c10d_functional)"
"""Host operators that start or await communication."""

KERNELS = {"compute": "computing", "communication": "communication", "memory": "memory"}


@analysis("rank")
def activity(
    steps: pl.LazyFrame,
    kernels: pl.LazyFrame | None,
    collectives: pl.LazyFrame | None,
    operators: pl.LazyFrame | None,
    marks: pl.DataFrame | None,
) -> pl.DataFrame:
    """Merge a rank's ranges by what it was doing.

    Args:
        steps: Only for the rank's number.
        kernels: Device work; without any, the host's operators and collectives count.
        collectives: Communication calls.
        operators: Host operators, for CPU-only recordings.
        marks: What explains idle time.

    Returns:
        `rank`, `what` (one of `KINDS`), `start_ns`, `end_ns` (merged ranges of one kind) and `on_device`.

    Raises:
        Unavailable: If the rank's communication was recorded, but not what its device computed: nothing recorded
            is not the same as nothing done.
    """
    device = pl.DataFrame() if kernels is None else kernels.select("kind", "start_ns", "duration_ns").collect()
    calls = None if collectives is None else collectives.select("on_device", "start_ns", "duration_ns").collect()
    on_device = not device.is_empty() or (calls is not None and calls["on_device"].any())
    parts: list[pl.DataFrame] = []
    if on_device:
        if device.is_empty() or not (device["kind"] == "compute").any():
            raise Unavailable("device work was recorded without compute kernels, so what it computed is unknown")
        parts.append(_named(device, pl.col("kind").replace_strict(KERNELS, default="computing")))
        if calls is not None:
            parts.append(_named(calls.filter("on_device"), pl.lit("communication")))
    else:
        if operators is not None:
            is_call = pl.col("name").str.contains(COMMUNICATION_CALL)
            what = pl.when(is_call).then(pl.lit("communication")).otherwise(pl.lit("computing"))
            parts.append(_named(operators.select("name", "start_ns", "duration_ns").collect(), what))
        if calls is not None:
            parts.append(_named(calls, pl.lit("communication")))
    rank = pl.lit(rank_of(steps), pl.Int32).alias("rank")
    work = pl.concat(parts) if parts else _nothing()
    found = merged(work)
    if marks is not None:
        found = pl.concat([found, marks.select("what", "start_ns", "end_ns")])
    return found.select(rank, pl.all(), on_device=pl.lit(on_device))


def active(activity: pl.DataFrame, kinds: Iterable[str]) -> dict[str, pl.LazyFrame]:
    """The ranges (`start_ns`, `end_ns`) of each kind, for `intervals.pieces`."""
    return {what: activity.lazy().filter(pl.col("what") == what).select("start_ns", "end_ns") for what in kinds}


def runs_on_device(activity: pl.DataFrame) -> bool:
    """Whether the work runs on an accelerator; false for a CPU-only recording."""
    return bool(activity["on_device"].any())


def computing(activity: pl.DataFrame) -> pl.Expr:
    """Whether a piece counts as computing: on a CPU, operators inside the data loader are loading."""
    busy = pl.col("computing")
    return busy if runs_on_device(activity) else busy & ~pl.col("data")


def _named(table: pl.DataFrame, what: pl.Expr) -> pl.DataFrame:
    return table.select(what.alias("what"), "start_ns", end_ns=pl.col("start_ns") + pl.col("duration_ns"))


def _nothing() -> pl.DataFrame:
    return pl.DataFrame(schema={"what": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64})
