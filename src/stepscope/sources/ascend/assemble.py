"""From one rank's recording, in either export format, to all its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.sources.ascend.collective_tables import collectives, with_peers
from stepscope.sources.ascend.communication_tables import links, transports
from stepscope.sources.ascend.kernel_tables import kernels, totals
from stepscope.sources.ascend.rank_files import RankFiles
from stepscope.sources.ascend.recording import Recording
from stepscope.sources.ascend.slice_tables import operators, queue_flows, slices, slices_table
from stepscope.sources.ascend.steps import steps_table
from stepscope.tables import (
    ALLOCATIONS,
    COLLECTIVES,
    COUNTERS,
    FLOWS,
    GROUPS,
    KERNEL_COUNTERS,
    KERNELS,
    LINKS,
    MEMORY_CURVE,
    OPERATOR_TOTALS,
    OPERATORS,
    RANKS,
    SLICES,
    STACKS,
    STEP_TOTALS,
    STEPS,
    TRANSPORTS,
    Table,
)

if TYPE_CHECKING:
    from stepscope.sources.base import Sink


def write_tables(recording: Recording, files: RankFiles, sink: Sink) -> None:
    """Write all tables of `recording` to `sink`, empty ones not at all."""
    kernel_rows, counters = kernels(recording, recording.steps)
    collective_rows = collectives(
        recording.communication, kernel_rows, recording.calls, recording.packets, recording.groups
    )
    collective_rows = with_peers(collective_rows, recording.groups, recording.identity.rank)
    slice_rows = slices(recording.host, kernel_rows, collective_rows, recording.tasks, recording.steps)
    operator_rows, stacks = operators(slice_rows)
    span = _span([slice_rows, collective_rows])
    step_rows = steps_table(recording.steps, kernel_rows, collective_rows, span)
    only_step = 0 if step_rows["step"].to_list() == [0] else None

    analysed = files.texts.get("communication") or files.analysis or files.path
    matrix = files.texts.get("matrix") or files.analysis or files.path
    identity = recording.identity
    if not collective_rows.is_empty() or recording.groups.names:
        identity.backend = "hccl"

    def write(table: Table, frame: pl.DataFrame) -> None:
        if frame.is_empty():
            return
        if only_step is not None and "step" in frame.columns and table is not OPERATOR_TOTALS:
            frame = frame.with_columns(pl.col("step").fill_null(only_step))
        sink.write(table, frame)

    sink.write(RANKS, identity.frame(*(span or (None, None))))
    if not recording.device_is_lost:  # a rank of which only the host is known is not to be compared with others
        write(STEPS, step_rows)
    write(KERNELS, kernel_rows)
    write(KERNEL_COUNTERS, counters)
    write(COLLECTIVES, collective_rows)
    write(GROUPS, recording.groups.frame())
    write(TRANSPORTS, transports(recording.packets, analysed, sink))
    write(LINKS, links(recording.links, recording.groups, matrix, sink))
    write(SLICES, slices_table(slice_rows))
    write(OPERATORS, operator_rows)
    write(STACKS, stacks)
    write(FLOWS, pl.concat([queue_flows(recording.host), recording.flows]))
    write(OPERATOR_TOTALS, totals(kernel_rows, recording.host, recording.totals))
    write(STEP_TOTALS, recording.step_totals)
    write(ALLOCATIONS, recording.allocations)
    write(MEMORY_CURVE, recording.memory_curve)
    write(COUNTERS, recording.counters)


def _span(frames: list[pl.DataFrame]) -> tuple[int, int] | None:
    """First and last time of all rows."""
    times = pl.concat([frame.select("start_ns", end_ns=pl.col("start_ns") + pl.col("duration_ns")) for frame in frames])
    if times.is_empty():
        return None
    first, last = times.select(pl.min("start_ns"), pl.max("end_ns")).row(0)
    return first, last
