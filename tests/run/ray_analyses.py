"""An analysis that a worker of a Ray cluster finds by importing this module."""

from __future__ import annotations

import os
import signal

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.registry import analysis


@analysis("rank", columns("rank process"))
def asked_on_ray(ranks: pl.LazyFrame, fault: str = "") -> pl.DataFrame:
    """The process that answers, unless it is to die."""
    if fault == "death":
        os.kill(os.getpid(), signal.SIGKILL)
    return ranks.select("rank", process=pl.lit(os.getpid(), pl.Int64)).collect()
