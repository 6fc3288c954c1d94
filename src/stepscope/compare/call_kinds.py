"""What most of the time of calls is: work, waiting for the device, or communication."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.step.host_work import COMMUNICATION_CALL
from stepscope.compare.registry import Sides
from stepscope.tables.base import Column

WORK, WAIT, COMMUNICATION = "work", "wait", "communication"
KINDS = (WORK, WAIT, COMMUNICATION)
"""What most of the time of calls is: work, waiting for the device, or communication, which waits for other ranks."""

KIND = Column(
    "kind",
    "string",
    "What most of its time is: `work`; `wait` for the device, as in `aten::item` or `cudaStreamSynchronize`; or "
    "`communication`. What a rank waits less is no gain of it if another one waits for it instead.",
    values=KINDS,
    importance=38,
)


def kinds_of(rows: Sides, keys: list[str], *, time: str, wait: str) -> pl.DataFrame:
    """The keys of each item with what most of its time is (`kind`), on both sides together.

    Args:
        rows: `name`, keys, and both times.
        keys: What tells items apart.
        time: Column of the time.
        wait: Column of the part of it in calls that wait for the device.
    """
    columns = list(dict.fromkeys([*keys, "name", time, wait]))
    sums = pl.concat(side.select(columns) for side in rows)
    is_wait = 2 * pl.col(wait).sum() > pl.col(time).sum()
    is_call = pl.col("name").str.contains(COMMUNICATION_CALL).any()
    kind = pl.when(is_call).then(pl.lit(COMMUNICATION)).when(is_wait).then(pl.lit(WAIT)).otherwise(pl.lit(WORK))
    return sums.group_by(keys).agg(kind=kind)
