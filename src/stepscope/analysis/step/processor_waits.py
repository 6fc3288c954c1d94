"""How long training waits for a processor in each step."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

NO_WAITS = "what threads wait for processors was not recorded: stepscope's recorder does so on Linux"


@analysis(
    "rank",
    columns(
        "rank step window_ns",
        Column(
            "run_delay_ns",
            "int64",
            "How long the training thread was ready to run while the processors ran others, within the step's length.",
            title="wait for processor",
        ),
        nulls="",
    ),
    together=True,
    nothing=NO_WAITS,
)
def processor_waits(steps: pl.LazyFrame, timed_steps: pl.DataFrame) -> pl.DataFrame:
    """List what the training thread waits for a processor: one row per step of which that is known, in order.

    Raises:
        Unavailable: If it is known of no step.
    """
    known = steps.filter(pl.col("run_delay_ns").is_not_null()).select("rank", "step", "run_delay_ns").collect()
    if known.is_empty():
        raise Unavailable(NO_WAITS)
    rows = timed_steps.select("rank", "step", "window_ns").join(known, on=["rank", "step"], maintain_order="left")
    delay = pl.col("run_delay_ns").clip(0, pl.col("window_ns"))
    return rows.select("rank", "step", "window_ns", run_delay_ns=delay)


def waited(rows: pl.DataFrame, processor_waits: pl.DataFrame | None) -> pl.Series:
    """What the thread of some steps (`rank`, `step`) waited for a processor, in their order; 0 if it is unknown."""
    if processor_waits is None:
        return pl.repeat(0, rows.height, dtype=pl.Int64, eager=True).alias("run_delay_ns")
    own = processor_waits.select("rank", "step", "run_delay_ns").unique(["rank", "step"], keep="first")
    found = rows.select("rank", "step").join(own, on=["rank", "step"], how="left", maintain_order="left")
    return found["run_delay_ns"].fill_null(0)


def waits_ratio(processor_waits: pl.DataFrame | None) -> float:
    """What threads waited for processors, of the length of all steps; 0 if it is unknown."""
    if processor_waits is None:
        return 0.0
    waits, steps = processor_waits.select(pl.col("run_delay_ns").sum(), pl.col("window_ns").sum()).row(0)
    return float(waits / steps) if steps else 0.0
