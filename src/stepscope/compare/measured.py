"""Whether operators and modules are compared by the time of the device or by that of the host."""

from __future__ import annotations

import polars as pl

from stepscope.compare.registry import Sides
from stepscope.compare.step_time import NAMES
from stepscope.tables.base import Column

DEVICE, HOST = "device", "host"

MEASURED_BY = Column(
    "measured",
    "string",
    "What is compared: time of the kernels that it launched, or its own host time, if kernels are unknown on a side or "
    "idle time of the device differs more than computing.",
    values=(DEVICE, HOST),
    importance=4,
)


def measured_by(sides: Sides, column: str, times: pl.DataFrame | None) -> str:
    """`device` if both sides have device work and the host does not decide, else `host`.

    Args:
        sides: Rows of both sides.
        column: The column with times of device work.
        times: `time_differences`, if known.
    """
    on_device = all(side[column].fill_null(0).sum() > 0 for side in sides)
    return DEVICE if on_device and not _is_host_bound(times) else HOST


def _is_host_bound(times: pl.DataFrame | None) -> bool:
    """Whether idle time of the device differs more than computing, so that the host decides."""
    if times is None:
        return False
    parts = dict(times.filter(pl.col("level") == 1).select("part", pl.col("difference_ns").abs()).iter_rows())
    free, computing = (int(parts.get(NAMES[name], 0)) for name in ("free_ns", "computing_ns"))
    return free > computing
