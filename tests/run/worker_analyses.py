"""An analysis that a worker process finds by importing this module."""

from __future__ import annotations

import os
import signal

import polars as pl

from stepscope import Unavailable
from stepscope.analysis.columns import columns
from stepscope.analysis.registry import analysis


@analysis("rank", columns("rank process"))
def asked_in(ranks: pl.LazyFrame, fault: str = "") -> pl.DataFrame:
    """The process that answers, unless it is to fail."""
    if fault == "death":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "bug":
        raise ZeroDivisionError("a bug")
    if fault == "reason":
        raise Unavailable("not of this rank", table="kernels", ranks=(2,))
    return ranks.select("rank", process=pl.lit(os.getpid(), pl.Int64)).collect()
