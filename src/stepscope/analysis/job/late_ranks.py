"""Which ranks take longer for their own work than comparable ranks, beyond noise and chance, and when."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.job.comparable import comparable
from stepscope.analysis.job.segments import WORK
from stepscope.analysis.methods.extra_work import EXTRA
from stepscope.analysis.methods.lateness import LIMITS as CHANCE
from stepscope.analysis.methods.patterns import LIMITS, Limits, patterns
from stepscope.analysis.methods.pauses import pauses
from stepscope.analysis.methods.sudden import stalled, sudden
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column

WHEN = ("steady", "since", "until", "periodic", "sometimes", "once", "rotating")
"""Patterns: in all steps; from a step on; up to a step, or between two; every n-th step; in some steps; in one; in most
steps some rank, but each time another one."""

COLUMNS = columns(
    Column("rank", "int32", "The late rank; null if it is another one each time, or all of them.", importance=66),
    meaning("kind", "What it takes longer for.", values=WORK),
    Column("pattern", "string", "When.", values=WHEN, importance=40),
    Column("since_step", "int32", "First slow step, if it was not slow before; else null.", importance=24),
    Column("until_step", "int32", "Last slow step, if it was not slow after it; else null.", importance=23),
    Column("period", "int64", "Steps between recurrences; null if irregular.", importance=13),
    Column("slow_steps", "list[int32]", "The slow steps, in order.", importance=12),
    Column("late_ranks", "list[int32]", "The ranks that were late in these steps.", importance=14),
    meaning("steps", "Number of compared steps."),
    Column(
        "excess_ns", "int64", "Extra time compared with the typical rank, in the mean of the slow steps.", importance=58
    ),
    Column("loss_ns", "int64", "The same in the mean of all steps.", importance=47),
    Column("typical_ns", "int64", "Time that the typical rank needs for it in the median step.", importance=51),
    meaning("score", "How far it is above normal, in standard errors; null if noise is unknown."),
    Column(
        "chance", "float64", "Probability that some rank is late so often by chance; null if unknown.", importance=20
    ),
    Column(
        "is_stall",
        "bool",
        "True if it is a long stall of its host, or a few, which may strike any rank.",
        importance=11,
    ),
    nulls="rank since_step until_step period score chance typical_ns",
)


@analysis("job", COLUMNS, whole_job=True)
def late_ranks(
    several_ranks: pl.DataFrame,  # noqa: ARG001 - asked first: of one rank, the rest need not be computed
    excess: pl.DataFrame,
    arrival: pl.DataFrame | None,
    ranks: pl.LazyFrame,
    steps: pl.LazyFrame,
    work: pl.DataFrame,
    outer_steps: pl.DataFrame | None = None,
    all_steps: pl.DataFrame | None = None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Judge each rank's excess (`excess`) against noise and chance: one row per late rank and kind of work, largest
    loss first (see `patterns`). Single steps that no random stall explains count as well (see `sudden`), unless
    something starts up in them.

    Raises:
        Unavailable: If there are fewer than two ranks, or the ranks do not belong together.
    """
    compared = compared_excess(excess, arrival, ranks, steps)
    step_ns, starts = typical_step(compared), _starts(outer_steps, all_steps)
    listed = (
        compared.filter(pl.col("kind") != EXTRA)
        .rename({"program": "peers"})
        .with_columns(pl.col("peers").cast(pl.String))
    )
    few = listed.filter(pl.col("step").n_unique().over("kind", "peers") < CHANCE.chance_steps)
    sure = sudden(listed, work, step_ns, starts)
    found = patterns(listed, step_ns, limits, sure, starts, stalled(few, work))
    return (
        found.rename({"steps": "listed", "ranks": "late_ranks", "compared_steps": "steps"})
        .with_columns(slow_steps="listed")
        .with_columns(pl.col("period", "steps").cast(pl.Int64))
        .select(names(COLUMNS))
    )


def _starts(outer_steps: pl.DataFrame | None, all_steps: pl.DataFrame | None) -> list[int]:
    """The first step of the recording, and those after a pause of it."""
    firsts = [] if outer_steps is None else outer_steps["first_step"].to_list()
    resumed = [] if all_steps is None else pauses(all_steps)["step"].to_list()
    return sorted({*firsts, *resumed})


def compared_excess(
    excess: pl.DataFrame, arrival: pl.DataFrame | None, ranks: pl.LazyFrame, steps: pl.LazyFrame
) -> pl.DataFrame:
    """The excess of ranks that can be compared, at kinds of work that ranks can be slow at.

    Raises:
        Unavailable: If there are fewer than two, or the ranks do not belong together.
    """
    return comparable(excess, steps, arrival, ranks).filter(pl.col("kind").is_in([*WORK, EXTRA]))


def typical_step(excess: pl.DataFrame) -> float:
    """About how long a step is: the longest time that a rank is busy in it, ns."""
    busy = excess.group_by("rank", "step").agg(pl.col("own_ns").sum()).group_by("step").agg(pl.col("own_ns").max())
    # of two steps the shorter one: the other may be the odd one
    middle = pl.when(pl.len() == 2).then(pl.col("own_ns").min()).otherwise(pl.col("own_ns").median())
    return float(busy.select(middle).item() or 0)
