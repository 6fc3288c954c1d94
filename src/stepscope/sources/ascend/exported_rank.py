"""One rank as read from either export format, before it becomes tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

import polars as pl

from stepscope.sources.ascend.communication_files import CALLS, LINKS, PACKETS
from stepscope.sources.ascend.groups import Groups
from stepscope.sources.ascend.rank_info import RankInfo
from stepscope.sources.ascend.timeline import Kind, Timeline
from stepscope.tables import ALLOCATIONS, COUNTERS, KERNELS, MEMORY_CURVE, OPERATOR_TOTALS, STEP_TOTALS
from stepscope.tables.base import with_schema

STEPS = {"step": pl.Int32, "start_ns": pl.Int64, "end_ns": pl.Int64}
"""Ranges of the steps on the host. Of a recording in parts there is also `part`: the number of the part that holds
the work of the step, otherwise null."""

_RANGE = {
    "start_ns": pl.Int64,
    "duration_ns": pl.Int64,
    "category": pl.String,
    "name": pl.String,
    "process": pl.String,
    "thread": pl.String,
}
HOST = {
    **_RANGE,
    "correlation": pl.Int64,
    "input_shapes": pl.String,
    "input_types": pl.String,
    "sequence": pl.Int64,
    "forward_thread": pl.Int64,
    "stack": pl.String,
    "type": pl.String,
}
"""Ranges on the host; `category` is that of `slices`, `stack` a call stack with one frame a line, `type` that of an
operator whose name is a place in the model."""

COMPUTE = {name: dtype for name, dtype in KERNELS.stored_schema.items() if name != "kernel"}
"""Compute kernels as rows of `kernels`; may have columns of `kernel_counters` as well."""

TASKS = {
    **_RANGE,
    "device": pl.Int32,
    "stream": pl.Int32,
    "correlation": pl.Int64,
    "size_bytes": pl.Int64,
    "direction": pl.String,
}
"""Device work other than kernels: `memory`, `communication_task`, `device_annotation` or `other`; of memory operations
the direction, if recorded."""

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
    "algorithm": pl.String,
    "relayed": pl.Boolean,
    "retried": pl.Boolean,
    "step": pl.Int32,
}
"""Communication calls as the device ran them."""

OPERATOR_STARTS = {"correlation": pl.Int64, "operator_start_ns": pl.Int64}
"""When the framework operator began that launched the work with this correlation."""


Schema = Mapping[str, type[pl.DataType] | pl.DataType]
"""Column names and types."""


def shaped(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """`frame` with exactly the columns of `schema`; missing ones are null, values of another kind too."""
    return with_schema(frame, schema, strict=False)


def first_of_each(frame: pl.DataFrame, key: str) -> pl.DataFrame:
    """The first row of each value of `key`, in the rows' order; faster than `DataFrame.unique`."""
    return frame.filter(pl.col(key).is_first_distinct()) if frame.height > 1 else frame


def in_order(frame: pl.DataFrame, *ties: str, descending: bool = False) -> pl.DataFrame:
    """`frame` sorted by `start_ns`, rows with one start by `ties` (nulls last), and equal rows in their order."""
    directions, nulls_last = [False, *(descending for _ in ties)], [False, *(True for _ in ties)]
    return frame.sort("start_ns", *ties, descending=directions, nulls_last=nulls_last, maintain_order=True)


def nothing(schema: Schema) -> Callable[[], pl.DataFrame]:
    """Gives a frame without rows, always the same one: making it costs more than a query on it."""
    return cache(lambda: pl.DataFrame(schema=schema))


@dataclass
class ExportedRank:
    """One rank's recording. Frames that a format or an export level lacks stay empty."""

    identity: RankInfo
    groups: Groups
    timeline: Timeline
    steps: pl.DataFrame = field(default_factory=nothing(STEPS))
    communication: pl.DataFrame = field(default_factory=nothing(COMMUNICATION))
    operator_starts: pl.DataFrame = field(default_factory=nothing(OPERATOR_STARTS))
    calls: pl.DataFrame = field(default_factory=nothing(CALLS))
    packets: pl.DataFrame = field(default_factory=nothing(PACKETS))
    links: pl.DataFrame = field(default_factory=nothing(LINKS))
    described: pl.DataFrame | None = None
    """`described_calls`, if they cannot be derived from all calls together."""
    step_totals: pl.DataFrame = field(default_factory=nothing(STEP_TOTALS.stored_schema))
    totals: pl.DataFrame = field(default_factory=nothing(OPERATOR_TOTALS.stored_schema))
    """Totals from the files, for levels without events."""
    allocations: pl.DataFrame = field(default_factory=nothing(ALLOCATIONS.stored_schema))
    memory_curve: pl.DataFrame = field(default_factory=nothing(MEMORY_CURVE.stored_schema))
    counters: pl.DataFrame = field(default_factory=nothing(COUNTERS.stored_schema))
    own_steps: pl.DataFrame | None = None
    """Rows of `steps` as our own export states them, with their windows; None in exports of others."""
    device_is_lost: bool = False
    """Whether all device work is unreadable: then the ends of steps are unknown."""

    @property
    def has_kernels(self) -> bool:
        """Whether any compute kernel is known."""
        return self.timeline.rows("compute") + self.timeline.rows("details") > 0

    def stated_steps(self) -> set[int]:
        """The steps that the source itself states for work of the device."""
        kinds: tuple[Kind, ...] = ("compute", "details", "communication")
        frames = [frame["step"] for kind in kinds for frame in self.timeline.frames(kind, ["step"])]
        return {step for steps in frames for step in steps.drop_nulls().unique().to_list()}
