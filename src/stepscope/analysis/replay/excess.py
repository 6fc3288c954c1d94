"""How much longer each rank is busy with its own work in a step than ranks of the same program usually are."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.references import LIMITS, Limits, references
from stepscope.analysis.registry import analysis
from stepscope.analysis.replay.own_times import KINDS
from stepscope.tables.base import Column

COLUMNS = columns(
    "rank step",
    meaning("kind", "What it is.", values=KINDS),
    Column("own_ns", "int64", "Time that it is busy with it, without waiting for other ranks."),
    Column("typical_ns", "int64", "Time that this usually takes on comparable ranks in this step."),
    Column("excess_ns", "int64", "`own_ns` minus `typical_ns`; negative if it is faster."),
    Column("sigma_ns", "float64", "Noise: standard deviation of an ordinary rank's excess in a step."),
    Column("normal", "bool", "Whether the rank is one of those that define what is typical."),
    Column("program", "int32", "Lowest of the ranks that are compared with each other."),
    nulls="typical_ns excess_ns sigma_ns",
)


@analysis("job", COLUMNS, whole_job=True)
def excess(own_times: pl.DataFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Compare each rank's own work with that of comparable ranks: one row per rank, step and kind (see
    `references`)."""
    found = references(own_times.rename({"program": "peers"}), limits)
    return found.rename({"peers": "program"}).select(names(COLUMNS)).sort("rank", "step", "kind")
