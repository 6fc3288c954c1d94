"""What kinds of time are called on the device at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.advice.finding import CPU, platform_of

if TYPE_CHECKING:
    from stepscope.run import Run

OUTSIDE = "outside_operators"


def kinds_as_called(run: Run, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows whose `kind` is `dispatch` have another kind on a CPU: nothing is launched there, so that time is spent
    outside of operators."""
    if platform_of(run.table("ranks")).device != CPU:
        return rows
    return rows.with_columns(pl.col("kind").replace("dispatch", OUTSIDE))
