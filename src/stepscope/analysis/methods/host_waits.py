"""Calls of the host that wait for its device: which they are, and the operators in which they are made."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.launch_owners import Parents
from stepscope.sources.ancestors import climb
from stepscope.tables import KERNELS

SYNCHRONIZE = r"(?i)synchronize"
_BLOCKING = r"^(cuda|hip)Memcpy$|^hipMemcpyWithStream$"
_TO_PAGEABLE = r"(?i)device -> pageable"
_COPY = r"(?i)memcpy"


def waiting_calls(slices: pl.LazyFrame, kernels: pl.LazyFrame | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Calls of the runtime in steps that wait: synchronising ones, and copies to pageable memory, which return when
    they are done.

    Returns:
        The waits, and all calls that copy: `rank`, `slice`, `parent`, `thread`, `step`, `name`, `start_ns`,
        `duration_ns`, and `copy`, the direction of the copy that a call makes.
    """
    memory = KERNELS.or_empty(kernels).filter((pl.col("kind") == "memory") & pl.col("correlation").is_not_null())
    copies = memory.select("rank", "correlation", copy="name").collect(engine="streaming")
    runtime = slices.filter((pl.col("category") == "runtime") & pl.col("step").is_not_null())
    name = pl.col("name")
    names = runtime.select("name").unique().collect(engine="streaming")
    waiting = names.filter(name.str.contains(SYNCHRONIZE) | name.str.contains(_BLOCKING))["name"]
    moving = names.filter(name.str.contains(_COPY))["name"]
    some = runtime.filter(name.is_in(pl.concat([waiting, moving]).implode()))
    calls = some.select(
        "rank", "slice", "parent", "thread", "step", "name", "correlation", "start_ns", "duration_ns"
    ).collect(engine="streaming")
    calls = calls.join(copies.unique(["rank", "correlation"], keep="first"), on=["rank", "correlation"], how="left")
    is_wait = name.is_in(waiting.implode()) | pl.col("copy").str.contains(_TO_PAGEABLE).fill_null(value=False)
    calls = calls.sort("rank", "slice")
    return calls.filter(is_wait), calls.filter(pl.col("copy").is_not_null())


def outer_waits(waits: pl.DataFrame, slices: pl.LazyFrame) -> pl.DataFrame:
    """The waits that are not made by other waits, as of two layers of a runtime."""
    if waits.is_empty():
        return waits
    parents = Parents(slices, waits["rank"])
    parts = []
    for (rank,), own in waits.partition_by("rank", as_dict=True, maintain_order=True).items():
        parent = parents.of(rank, own["slice"], own["parent"].drop_nulls())
        parts.append(own.filter(climb(own["parent"], parent, own["slice"]).is_null()))
    return pl.concat(parts)
