"""The host memory of the training process, and in which module and event it grew."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.intervals import END
from stepscope.analysis.methods.step_windows import count_steps, of_steps, step_ranges
from stepscope.analysis.registry import analysis, ranks_of, without_rows
from stepscope.errors import Unavailable
from stepscope.selection import Choice
from stepscope.tables import HOST_EVENTS, HOST_USAGE, RANKS
from stepscope.tables.base import Column

KEYS = ("module", "event", "stage")

SAMPLED = "process"
"""The module of samples that the recorder took of the whole process."""


@analysis(
    "rank",
    columns(
        "rank",
        meaning("time_ns", "End of a marked range, or when it was sampled."),
        "step module event stage",
        Column("memory_bytes", "int64", "Memory of the process."),
        keep="time_ns step",
    ),
    together=True,
)
def host_memory_curve(
    host_events: pl.LazyFrame | None,
    host_usage: pl.LazyFrame | None,
    steps: pl.LazyFrame | None,
    ranks: pl.LazyFrame | None,
    chosen: Choice = None,
) -> pl.DataFrame:
    """List the memory of the process over time: one row for the start and the end of each marked range with memory, and
    for each sample of the process (resident memory; module `process`).

    Args:
        chosen: Only rows of these steps, e.g. `1-3`; all rows if their steps are unknown (`step` is null).

    Raises:
        Unavailable: If no memory was recorded, or none in the chosen steps.
    """
    end = END.fill_null(pl.col("start_ns"))
    ends = [
        HOST_EVENTS.or_empty(host_events).select("rank", "step", *KEYS, time_ns=time, memory_bytes=memory)
        for time, memory in ((pl.col("start_ns"), "memory_start_bytes"), (end, "memory_end_bytes"))
    ]
    of_process = HOST_USAGE.or_empty(host_usage).filter(pl.col("scope") == SAMPLED)
    sampled = of_process.select("rank", "time_ns", module=pl.lit(SAMPLED), memory_bytes="rss_bytes")
    rows = pl.concat([*ends, sampled], how="diagonal").drop_nulls("memory_bytes").collect()
    if (unknown := without_rows(ranks_of(RANKS.or_empty(ranks)), rows)) or rows.is_empty():
        raise Unavailable("no host memory was recorded", of=unknown)
    kept = of_steps(rows, step_ranges(steps, ranks), chosen)
    if left_out := without_rows(rows["rank"].unique().sort(), kept):
        raise Unavailable("no host memory was recorded in the chosen steps", of=left_out)
    return kept.sort("rank", "time_ns", maintain_order=True).select("rank", "time_ns", "step", *KEYS, "memory_bytes")


@analysis(
    "rank",
    columns(
        "rank module event stage points",
        meaning("steps", "Number of steps in which they lie; null if unknown."),
        Column("first_bytes", "int64", "Memory at the first point."),
        Column("last_bytes", "int64", "Memory at the last point."),
        Column("max_bytes", "int64", "Highest memory."),
        Column(
            "growth_bytes",
            "int64",
            "Sum over ranges of memory at the end minus at the start; for samples: last minus first.",
        ),
        Column("mean_growth_bytes", "float64", "Mean growth of a range; null for samples."),
        keep="event growth_bytes module stage max_bytes last_bytes",
    ),
    together=True,
    passes=("chosen",),
)
def host_memory(
    host_memory_curve: pl.DataFrame,
    host_events: pl.LazyFrame | None,
    steps: pl.LazyFrame | None,
    ranks: pl.LazyFrame | None,
    chosen: Choice = None,
) -> pl.DataFrame:
    """Summarise the memory of the process: one row per module, event and stage, greatest growth first."""
    memory = pl.col("memory_bytes")
    sums = host_memory_curve.group_by("rank", *KEYS, maintain_order=True).agg(
        points=pl.len().cast(pl.Int64),
        steps=count_steps(),
        first_bytes=memory.first(),
        last_bytes=memory.last(),
        max_bytes=memory.max(),
    )
    sampled = pl.when(pl.col("module") == SAMPLED).then(pl.col("last_bytes") - pl.col("first_bytes"))
    return (
        sums.join(
            _grown(host_events, step_ranges(steps, ranks), chosen), on=["rank", *KEYS], how="left", nulls_equal=True
        )
        .with_columns(growth_bytes=pl.coalesce("growth_bytes", sampled))
        .sort("rank", "growth_bytes", *KEYS, descending=[False, True, False, False, False], nulls_last=True)
    )


def _grown(events: pl.LazyFrame | None, ranges: pl.DataFrame, chosen: Choice) -> pl.DataFrame:
    """How much memory grew within marked ranges."""
    growth = pl.col("memory_end_bytes") - pl.col("memory_start_bytes")
    marked = HOST_EVENTS.or_empty(events).filter(growth.is_not_null())
    return (
        of_steps(marked.select("rank", "step", *KEYS, "start_ns", growth=growth).collect(), ranges, chosen, "start_ns")
        .group_by("rank", *KEYS)
        .agg(growth_bytes=pl.col("growth").sum(), mean_growth_bytes=pl.col("growth").mean())
    )
