"""Which ranges of a rank count as computing, communication, memory operations and data loading.

On an accelerator these are its kernels. In a CPU-only recording, computing is the framework's operators on any
thread, communication is the collective work of the backend (e.g. `gloo:*`) and the calls that start or await it.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.errors import Unavailable

DATA_LOADING = r"(?i)dataloader.*__next__|^## ?(data|wait_for_batch|dataload\w*) ?##$"
"""Annotations during which the training loop waits for its next batch: PyTorch names its own
`enumerate(DataLoader)#<iterator>.__next__`; the bare words are what training scripts commonly mark."""

COMMUNICATION_CALL = r"^(c10d::|gloo:|nccl:|hccl:|mpi:|ucc:|record_param_comms|_c10d_functional)"
"""Host operators that start or await communication."""

SYNCHRONISATION = r"(?i)synchronize|^(aten::item|aten::_local_scalar_dense)$"
"""Host calls that wait for the device."""

GARBAGE_COLLECTION = "gc"


@dataclass(frozen=True)
class Layers:
    """Ranges (`start_ns`, `end_ns`) of one rank by what they are, and where the work runs."""

    on_device: bool
    computing: pl.LazyFrame
    communication: pl.LazyFrame
    memory: pl.LazyFrame
    data: pl.LazyFrame


def layers(
    kernels: pl.LazyFrame | None,
    collectives: pl.LazyFrame | None,
    operators: pl.LazyFrame | None,
    slices: pl.LazyFrame | None,
) -> Layers:
    """Sort one rank's ranges into layers; a missing table leaves its layer empty.

    Raises:
        Unavailable: If the rank's communication was recorded, but not what its device computed: nothing recorded
            is not the same as nothing done.
    """
    data = nothing()
    if slices is not None:
        data = ranges(slices.filter(is_data_loading()))
    kinds = [] if kernels is None else kernels.select(pl.col("kind").unique()).collect()["kind"].to_list()
    on_device = bool(kinds) or (collectives is not None and _any(collectives.filter(pl.col("on_device"))))
    if on_device and (kernels is None or "compute" not in kinds):
        raise Unavailable("device work was recorded without compute kernels, so what it computed is unknown")
    if on_device and kernels is not None:
        kind = pl.col("kind")
        communication = ranges(kernels.filter(kind == "communication"))
        if collectives is not None:
            communication = pl.concat([communication, ranges(collectives.filter(pl.col("on_device")))])
        return Layers(
            on_device=True,
            computing=ranges(kernels.filter(kind == "compute")),
            communication=communication,
            memory=ranges(kernels.filter(kind == "memory")),
            data=data,
        )
    computing = communication = nothing()
    if operators is not None:
        is_call = pl.col("name").str.contains(COMMUNICATION_CALL)
        computing = ranges(operators.filter(~is_call))
        communication = ranges(operators.filter(is_call))
    if collectives is not None:
        communication = pl.concat([communication, ranges(collectives)])
    return Layers(on_device=False, computing=computing, communication=communication, memory=nothing(), data=data)


def _any(table: pl.LazyFrame) -> bool:
    return not table.head(1).collect().is_empty()


def is_data_loading() -> pl.Expr:
    """True for slices in which the training loop waits for its next batch."""
    return (pl.col("category") == "annotation") & pl.col("name").str.contains(DATA_LOADING)


def ranges(table: pl.LazyFrame) -> pl.LazyFrame:
    """`start_ns` and `end_ns` of a table that has a start and a duration."""
    return table.select("start_ns", end_ns=pl.col("start_ns") + pl.col("duration_ns"))


def nothing() -> pl.LazyFrame:
    """No ranges."""
    return pl.LazyFrame(schema={"start_ns": pl.Int64, "end_ns": pl.Int64})
