"""What batch normalisation that is synchronised between ranks costs the host."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.names import named
from stepscope.analysis.methods.stopping_calls import COLUMNS, stopping_calls
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable

NO_CALLS = "no synchronised batch normalisation was recorded in training"

SYNCHRONISED = r"(?i)sync_?batch_?norm|batch_norm_gather_stats"
"""Operators, modules and functions of it, in PyTorch and MindSpore."""

TRAINING = r"(?i)backward|Optimizer\.step|^optimizer: "
"""What only training runs."""

_HOST = ("operator", "annotation", "python")


@analysis("rank", COLUMNS, together=True, nothing=NO_CALLS)
def sync_batch_norms(
    slices: pl.LazyFrame,
    idle_pieces: pl.DataFrame | None = None,
    operators: pl.LazyFrame | None = None,
    stacks: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Sum up batch normalisations that are synchronised between ranks: one row per rank, step and name, in order.

    Ranks that only infer are left out: there it is an ordinary normalisation.

    Raises:
        Unavailable: If there are none.
    """
    host = slices.filter(pl.col("category").is_in(_HOST))
    is_one, trains = pl.col("name").str.contains(SYNCHRONISED), pl.col("name").str.contains(TRAINING)
    known = named(host, wanted=is_one, trains=trains)
    training = host.filter(known["trains"]).select(pl.col("rank").unique()).collect()["rank"].sort().to_list()
    wanted = pl.col("category").is_in(_HOST) & known["wanted"] & pl.col("rank").is_in(training)
    found = stopping_calls(slices, wanted, idle_pieces, operators, stacks)
    if found.is_empty():
        raise Unavailable(NO_CALLS)
    return found
