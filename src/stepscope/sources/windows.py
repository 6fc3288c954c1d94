"""Spans of time: of ranges, and of the windows in which a step's times are summed on a device."""

from __future__ import annotations

import polars as pl


def device_windows(first_ns: pl.Series, last_ns: int) -> pl.DataFrame:
    """Lay out the windows of steps: each from its first device task to that of the next step.

    A step without device work has an empty window where the next step's begins. Work of a step that starts before an
    earlier step's does not turn the windows round: a window begins no earlier than the one before it.

    Args:
        first_ns: First device task of each step, in the order of the steps; null for none.
        last_ns: End of the last step's last device task.

    Returns:
        `window_start_ns`, `window_end_ns`, in the order of the steps.

    Examples:
        >>> device_windows(pl.Series([10, None, 250]), 270).rows()
        [(10, 250), (250, 250), (250, 270)]
    """
    start = pl.col("first_ns").fill_null(strategy="backward").fill_null(last_ns).cum_max()
    laid = pl.DataFrame({"first_ns": first_ns.cast(pl.Int64)}).select(window_start_ns=start)
    end = (
        pl.col("window_start_ns")
        .shift(-1)
        .fill_null(pl.max_horizontal(pl.lit(last_ns), pl.col("window_start_ns").max()))
    )
    return laid.with_columns(window_end_ns=end)


def span_of(ranges: pl.DataFrame) -> tuple[int, int] | None:
    """First start and last end of ranges (`start_ns`, `duration_ns`); None if there are none."""
    first, last = ranges.select(pl.min("start_ns"), last=(pl.col("start_ns") + pl.col("duration_ns")).max()).row(0)
    return None if first is None else (first, last)


def around(spans: list[tuple[int, int] | None]) -> tuple[int, int] | None:
    """The span that holds all of `spans`."""
    known = [span for span in spans if span is not None]
    return (min(first for first, _ in known), max(last for _, last in known)) if known else None


SPANS = {"step": pl.Int32, "first_ns": pl.Int64, "last_ns": pl.Int64}
"""Columns of `step_spans`."""


def step_spans(work: pl.DataFrame) -> pl.DataFrame:
    """First start and last end of device work in each step, as `SPANS`.

    Args:
        work: `step` (of its launch), `start_ns`, `duration_ns`.
    """
    ends = pl.col("start_ns") + pl.col("duration_ns")
    return work.group_by("step").agg(first_ns=pl.min("start_ns"), last_ns=ends.max())
