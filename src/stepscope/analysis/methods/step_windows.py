"""The windows of steps, numbered for `intervals.pieces`."""

from __future__ import annotations

import polars as pl

from stepscope.tables.steps import WHOLE_RECORDING


def known_steps(steps: pl.LazyFrame) -> pl.LazyFrame:
    """Steps without those in which nothing was recorded although other steps have data: they are unknown, not idle."""
    return steps.filter(pl.col("recorded").fill_null(True))


def is_whole_recording() -> pl.Expr:
    """Whether a row of `steps` is a whole recording without marked steps."""
    return pl.col("window") == WHOLE_RECORDING


def step_windows(steps: pl.LazyFrame) -> pl.DataFrame:
    """The steps' windows, rank by rank in order.

    Returns:
        `window` (number), `rank`, `step`, `start_ns`, `end_ns`, `window_kind` (`steps.window`) and `preparing_ns`
        (start of the step on the host to its first device task; null without one).
    """
    preparing = pl.when(pl.col("window") == "device").then(pl.col("window_start_ns") - pl.col("start_ns"))
    return (
        steps.sort("rank", "window_start_ns", "window_end_ns", "step")
        .select(
            "rank",
            "step",
            start_ns=pl.col("window_start_ns"),
            end_ns=pl.col("window_end_ns"),
            window_kind=pl.col("window"),
            preparing_ns=preparing,
        )
        .with_row_index("window")
        .with_columns(pl.col("window").cast(pl.Int64))
        .collect()
    )
