"""Which stage of the input slows training down: making batches, sending them to the device, or taking them there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.input.input_queues import DATA_QUEUE, FIRST, HOST_QUEUES
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables.base import Column, schema_of

PROCESSING, TRANSMISSION, OBTAINING = "data processing", "data transmission", "data obtaining"
STAGES = (PROCESSING, TRANSMISSION, OBTAINING)

HEALTHY, BOTTLENECK, UNKNOWN = "healthy", "bottleneck", "unknown"


@dataclass(frozen=True)
class Limits:
    """When a stage counts as the bottleneck."""

    host_empty_ratio: float = limit(0.30, "of the batches, finding the host queue empty", "MindSpore Insight")
    data_empty_ratio: float = limit(0.0, "of the steps, finding the data queue empty", "MindSpore Insight")
    obtaining_ratio: float = limit(
        0.10,
        "of the time between batches, spent taking one that is ready",
        "twice the PyTorch profiler's limit for data loading",
    )


COLUMNS = columns(
    "rank",
    meaning("stage", "Stage of the input.", values=STAGES),
    Column("verdict", "string", "Judgement of the stage.", values=(HEALTHY, BOTTLENECK, UNKNOWN)),
    "queue batches empty full empty_ratio mean_total_ns interval_ns",
    keep="stage verdict",
)

_FIGURES = names(COLUMNS[3:])
"""Figures of the queue."""


NO_BATCH = "no batch of the chosen steps was recorded"


@analysis("rank", COLUMNS, together=True, nothing=NO_BATCH)
def input_stages(input_queues: pl.DataFrame, limits: Limits = Limits()) -> pl.DataFrame:
    """Judge the three stages of the input.

    Data processing is the bottleneck if more than `host_empty_ratio` of the batches found the host queue empty. If it
    is not, data transmission is the bottleneck if the data queue was empty for more than `data_empty_ratio` of the
    steps (without a recorded host queue, an earlier stage may be the cause). The stage after a bottleneck is unknown.
    An empty queue at the first batch is normal, and a single batch decides nothing. Data obtaining is the bottleneck if
    taking a batch that is ready takes more than `obtaining_ratio` of the time between batches.

    Returns:
        One row for each of `STAGES`, with the figures of its output queue.

    Raises:
        Unavailable: If no batch of the chosen steps was recorded.
    """
    if input_queues.is_empty():
        raise Unavailable(NO_BATCH)
    ranks: dict[int, dict[str, dict[str, Any]]] = {}
    for row in input_queues.iter_rows(named=True):
        ranks.setdefault(row["rank"], {})[row["queue"]] = row
    rows = [row for rank, queues in ranks.items() for row in _judged(rank, queues, limits)]
    return pl.DataFrame(rows, schema=schema_of(COLUMNS))


def _judged(rank: int, queues: Mapping[str, Mapping[str, Any]], limits: Limits) -> Iterator[dict[str, Any]]:
    """The stages of a rank."""
    host = next((queues[name] for name in HOST_QUEUES if name in queues), None)
    data = queues.get(DATA_QUEUE)
    processing = _verdict(host, limits.host_empty_ratio)
    verdicts = {
        PROCESSING: (processing, host),
        TRANSMISSION: (UNKNOWN if processing == BOTTLENECK else _verdict(data, limits.data_empty_ratio), data),
        OBTAINING: (_obtaining(data, limits.obtaining_ratio), data),
    }
    for stage, (verdict, queue) in verdicts.items():
        figures = {key: (queue or {}).get(key) for key in _FIGURES}
        yield {"rank": rank, "stage": stage, "verdict": verdict, **figures}


def _verdict(queue: Mapping[str, Any] | None, most: float) -> str:
    """Whether the stage before a queue keeps up."""
    if queue is None or queue["empty_ratio"] is None or queue["batches"] <= FIRST:
        return UNKNOWN
    return BOTTLENECK if queue["empty_ratio"] > most and queue["empty_later"] else HEALTHY


def _obtaining(queue: Mapping[str, Any] | None, most: float) -> str:
    """Whether the device takes its batches quickly; an empty queue is the fault of earlier stages."""
    if queue is None or queue["mean_total_ns"] is None or not queue["interval_ns"]:
        return UNKNOWN
    slow = queue["mean_total_ns"] > most * queue["interval_ns"] and not queue["empty"]
    return BOTTLENECK if slow else HEALTHY
