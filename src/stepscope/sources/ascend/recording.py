"""What either export format yields of one rank, before it becomes tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from stepscope.sources.ascend.communication_files import CALLS, LINKS, PACKETS
from stepscope.sources.ascend.groups import Groups
from stepscope.sources.ascend.side_files import Identity
from stepscope.tables import (
    ALLOCATIONS,
    COUNTERS,
    FLOWS,
    KERNELS,
    MEMORY_CURVE,
    OPERATOR_TOTALS,
    STEP_TOTALS,
    Table,
)
from stepscope.tables.base import with_schema

STEPS = {"step": pl.Int32, "start_ns": pl.Int64, "end_ns": pl.Int64}
"""Ranges of the steps on the host."""

HOST = {
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "category": pl.String,
    "name": pl.String,
    "process": pl.String,
    "thread": pl.String,
    "correlation": pl.Int64,
    "input_shapes": pl.String,
    "input_types": pl.String,
    "sequence": pl.Int64,
    "forward_thread": pl.Int64,
    "stack": pl.String,
}
"""Ranges on the host; `category` is that of `slices`, `stack` a call stack with one frame a line."""

COMPUTE = {name: dtype for name, dtype in KERNELS.stored_schema.items() if name != "kernel"}
"""Compute kernels as rows of `kernels`; columns of `kernel_counters` may stand beside."""

TASKS = {
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "category": pl.String,
    "name": pl.String,
    "process": pl.String,
    "thread": pl.String,
    "device": pl.Int32,
    "stream": pl.Int32,
    "correlation": pl.Int64,
    "size_bytes": pl.Int64,
}
"""Device work that is no kernel: `memory`, `communication_task`, `device_annotation` or `other`."""

COMMUNICATION = {
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "name": pl.String,
    "type": pl.String,
    "device": pl.Int32,
    "correlation": pl.Int64,
    "wait_ns": pl.Int64,
    "group": pl.String,
    "size_bytes": pl.Int64,
    "element_type": pl.String,
    "step": pl.Int32,
}
"""Communication calls as the device ran them."""

OPERATOR_STARTS = {"correlation": pl.Int64, "operator_start_ns": pl.Int64}
"""When the framework operator began that launched the work with this correlation."""


Schema = Mapping[str, type[pl.DataType] | pl.DataType]
"""Column names and types."""


def empty(schema: Schema) -> pl.DataFrame:
    """A frame without rows."""
    return pl.DataFrame(schema=schema)


def shaped(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """`frame` with exactly the columns of `schema`; missing ones are null, values of another kind too."""
    return with_schema(frame, schema, strict=False)


def no_rows(table: Table) -> pl.DataFrame:
    """A frame of `table` without rows."""
    return empty(table.stored_schema)


@dataclass
class Recording:
    """One rank's recording. Frames that a format or an export level lacks stay empty."""

    identity: Identity
    groups: Groups
    steps: pl.DataFrame = field(default_factory=lambda: empty(STEPS))
    host: pl.DataFrame = field(default_factory=lambda: empty(HOST))
    compute: pl.DataFrame = field(default_factory=lambda: empty(COMPUTE))
    tasks: pl.DataFrame = field(default_factory=lambda: empty(TASKS))
    communication: pl.DataFrame = field(default_factory=lambda: empty(COMMUNICATION))
    operator_starts: pl.DataFrame = field(default_factory=lambda: empty(OPERATOR_STARTS))
    calls: pl.DataFrame = field(default_factory=lambda: empty(CALLS))
    packets: pl.DataFrame = field(default_factory=lambda: empty(PACKETS))
    links: pl.DataFrame = field(default_factory=lambda: empty(LINKS))
    step_totals: pl.DataFrame = field(default_factory=lambda: no_rows(STEP_TOTALS))
    totals: pl.DataFrame = field(default_factory=lambda: no_rows(OPERATOR_TOTALS))
    """Totals as the files state them, for levels of which there are no events."""
    allocations: pl.DataFrame = field(default_factory=lambda: no_rows(ALLOCATIONS))
    memory_curve: pl.DataFrame = field(default_factory=lambda: no_rows(MEMORY_CURVE))
    counters: pl.DataFrame = field(default_factory=lambda: no_rows(COUNTERS))
    flows: pl.DataFrame = field(default_factory=lambda: no_rows(FLOWS))
    device_is_lost: bool = False
    """Whether the device ran something of which nothing can be read: then nobody knows where steps end."""
