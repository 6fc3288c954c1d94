"""Long pauses of a recording without steps that happened once: what starts up, and not what each step waits for."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.step_windows import is_whole_recording
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.idle import unbroken
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When a pause counts as one that does not come back: both limits must be reached."""

    recorded_ratio: float = limit(0.2, "of what is recorded beside longer ones", "chosen by us: less may come back")
    next_factor: float = limit(2.0, "times the next shorter pause", "chosen by us: pauses of steps are alike")


LIMITS = Limits()

COLUMNS = columns("rank start_ns duration_ns recorded_ns", nulls="")


@analysis("rank", COLUMNS, together=True)
def single_pauses(idle_pieces: pl.DataFrame, breakdown: pl.DataFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Find pauses that are far longer than all others, longest first; of marked steps there are none.

    Returns:
        One row a pause, longest first.
    """
    whole = breakdown.filter(is_whole_recording()).select("rank", recorded_ns="window_ns")
    gaps = (
        unbroken(idle_pieces)
        .join(whole, on="rank")
        .sort("rank", "duration_ns", "start_ns", descending=[False, True, False])
    )
    longer = pl.col("duration_ns").cum_sum().over("rank") - pl.col("duration_ns")
    shorter = pl.col("duration_ns").shift(-1, fill_value=0).over("rank")
    is_long = pl.col("duration_ns") >= limits.recorded_ratio * (pl.col("recorded_ns") - longer)
    stands_out = is_long & (pl.col("duration_ns") >= limits.next_factor * shorter)
    return gaps.filter(stands_out.cast(pl.Int8).cum_min().over("rank") == 1).select(names(COLUMNS))
