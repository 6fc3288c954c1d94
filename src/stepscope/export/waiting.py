"""How long a rank waited in its communication calls, as far as that is known."""

from __future__ import annotations

import polars as pl

from stepscope.export.job import Job
from stepscope.tables.collectives import POINT_TO_POINT


def with_waits(job: Job, calls: pl.DataFrame) -> pl.DataFrame:
    """Calls with `wait_ns` filled in: until the last member entered the call, as `arrival` has it.

    Only calls of which all members were recorded and matched count: the last of those that were is not the last of all.
    Else it is what the source states, or null.

    Args:
        job: The rank, and what its peers tell of it.
        calls: Rows of `collectives`; their order is kept.
    """
    arrivals = job.arrivals() if calls.height else None
    if arrivals is None:
        return calls
    sizes = job.rows("groups").select("group", _listed=pl.col("members").list.len())
    world = pl.lit(job.world_size, pl.Int64)
    members = pl.coalesce("group_size", "_listed", world)
    everyone = pl.when(pl.col("operation").is_in(POINT_TO_POINT)).then(2).otherwise(members)
    met = arrivals.select("collective", "members", _met_ns="wait_ns")
    return (
        calls.join(sizes.unique("group"), on="group", how="left", maintain_order="left")
        .join(met, on="collective", how="left", maintain_order="left")
        .with_columns(wait_ns=pl.when(pl.col("members") == everyone).then("_met_ns").otherwise("wait_ns"))
        .select(calls.columns)
    )
