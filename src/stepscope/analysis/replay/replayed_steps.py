"""Which steps of a job are replayed: all, or of a long recording the last that fit into memory."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.activity import is_on_device
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables import COLLECTIVES, KERNELS
from stepscope.tables.base import Column

TOO_LONG = "is too long to be replayed in memory"
"""Of a step: why nothing is replayed."""


@dataclass(frozen=True)
class Limits:
    """How much is replayed."""

    operations: int = limit(
        3_000_000, "kernels, calls and ranges of hosts of all ranks", "a replay takes 1 kB of memory for each, measured"
    )


@analysis(
    "job",
    columns("step", Column("operations", "int64", "Kernels and calls of all ranks in it, and what hosts did.")),
    whole_job=True,
)
def replayed_steps(
    steps: pl.LazyFrame,
    activity: pl.DataFrame,
    kernels: pl.LazyFrame | None,
    collectives: pl.LazyFrame | None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """List the steps whose work is cut into pieces and replayed (`work`): all of them, or, if that is too much, the
    last ones in a row that are not. Of the others, nobody is blamed.

    Raises:
        Unavailable: If even the last step is too much.
    """
    every = steps.group_by("step").agg(pl.col("start_ns").min()).sort("start_ns", "step").collect()
    on_host = activity.filter(~is_on_device(activity))
    timed = steps.select("rank", "step", "start_ns").sort("start_ns", "step").collect()
    began = on_host.select("rank", "start_ns").sort("start_ns").join_asof(
        timed, on="start_ns", by="rank", check_sortedness=False
    )  # fmt: skip
    tables = (KERNELS.or_empty(kernels), COLLECTIVES.or_empty(collectives))
    counted = [rows.group_by("step").agg(n=pl.len().cast(pl.Int64)).collect(engine="streaming") for rows in tables]
    counted.append(began.group_by("step").agg(n=pl.len().cast(pl.Int64)))
    sums = pl.concat(counted).group_by("step").agg(operations=pl.col("n").sum())
    found = every.join(sums, on="step", how="left", maintain_order="left").with_columns(
        pl.col("operations").fill_null(0)
    )
    fitting = found.filter(pl.col("operations").cum_sum(reverse=True) <= limits.operations)
    if fitting.is_empty() and not found.is_empty():
        last = found["operations"][-1]
        raise Unavailable(f"a step of {last:,} kernels and calls {TOO_LONG}")
    return fitting.select("step", "operations").sort("step")
