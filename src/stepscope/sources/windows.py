"""The windows in which a step's times are summed on a device: one behind the other, without gap or overlap."""

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
