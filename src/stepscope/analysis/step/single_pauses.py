"""Long pauses that occur once in a recording without steps: start-up, not a wait of each step."""

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
    """When a pause counts as occurring once: both limits must be reached."""

    recorded_ratio: float = limit(
        0.2, "of the recording without longer pauses", "chosen by us: shorter pauses may recur"
    )
    next_factor: float = limit(
        2.0, "times the next shorter pause", "chosen by us: pauses in steps are of similar length"
    )


LIMITS = Limits()

COLUMNS = columns("rank start_ns duration_ns recorded_ns", nulls="")


@analysis("rank", COLUMNS, together=True)
def single_pauses(idle_pieces: pl.DataFrame, breakdown: pl.DataFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Find pauses that are far longer than all others; recordings with marked steps have none.

    Returns:
        One row per pause, longest first.
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
