"""Which pipe of a core limits each operator, and how much time those may lose that none limits."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.device.operator_work import COLUMNS as WORK
from stepscope.analysis.device.operator_work import PIPES
from stepscope.analysis.methods.statistics import share
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column

NONE = "none"
BOUNDS = (*(name.removesuffix("_ratio") for name in PIPES), NONE)

NO_PIPES = "no counters of the cores' pipes were recorded (of Ascend's profiler: aic_metrics=PipeUtilization)"


@dataclass(frozen=True)
class Limits:
    """When a pipe limits an operator."""

    busy_ratio: float = limit(0.8, "of the operator's time, a pipe is busy", "the Ascend advisor's limit")
    mean_ns: int = limit(20_000, "ns of a call, for one that nothing limits", "the Ascend advisor's limit")


LIMITS = Limits()

COLUMNS = (
    *WORK,
    *columns(
        Column("bound", "string", "The pipe that limits it; `none` if no pipe is busy enough.", values=BOUNDS),
        Column("busiest_ratio", "float64", "Share of the time in which its busiest pipe is busy.", title="busiest"),
        Column(
            "space_ratio",
            "float64",
            "Share of its time that it would save at most, were its busiest pipe as busy as pipes that limit are.",
            title="space",
        ),
        Column("space_ns", "int64", "This share of its time.", title="at most"),
        Column("unbound", "bool", "True if calls take long and no pipe limits it."),
        Column("share_ratio", "float64", "Share of the rank's time in operators with counters.", importance=60),
        nulls="",
    ),
)


@analysis("rank", COLUMNS, together=True, nothing=NO_PIPES)
def operator_bounds(operator_work: pl.DataFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Name the pipe that limits each operator whose pipes were counted, the longest operators first.

    Ranks without counters have no answer.
    """
    counted = operator_work.filter(pl.col("counted") > 0)
    busiest = pl.max_horizontal([*PIPES])
    named = pl.coalesce(pl.when(pl.col(name) == busiest).then(pl.lit(name.removesuffix("_ratio"))) for name in PIPES)
    found = counted.with_columns(
        share(),
        bound=pl.when(busiest >= limits.busy_ratio).then(named).otherwise(pl.lit(NONE)),
        busiest_ratio=busiest,
        space_ratio=(1 - busiest / limits.busy_ratio).clip(lower_bound=0.0),
    )
    space = (pl.col("total_ns") * pl.col("space_ratio")).round().cast(pl.Int64)
    unbound = (pl.col("bound") == NONE) & (pl.col("mean_ns") >= limits.mean_ns)
    return found.with_columns(space_ns=space, unbound=unbound).select(names(COLUMNS))
