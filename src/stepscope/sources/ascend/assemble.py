"""From one rank's recording, in either export format, to all its tables."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from stepscope.sources.ascend.checks import Busy
from stepscope.sources.ascend.collective_tables import collectives, described_calls, with_peers
from stepscope.sources.ascend.communication_tables import links, of_calls, transports
from stepscope.sources.ascend.event_tables import EventTables
from stepscope.sources.ascend.exported_rank import ExportedRank
from stepscope.sources.ascend.rank_files import ExportFiles
from stepscope.sources.ascend.steps import steps_table
from stepscope.sources.base import Sink
from stepscope.sources.windows import around, span_of, step_spans
from stepscope.tables import (
    ALLOCATIONS,
    COLLECTIVES,
    COUNTERS,
    GROUPS,
    LINKS,
    MEMORY_CURVE,
    OPERATOR_TOTALS,
    STEP_TOTALS,
    STEPS,
    TRANSPORTS,
    Table,
)


def _as_exported(rows: pl.DataFrame) -> pl.DataFrame:
    return rows


def write_tables(
    recording: ExportedRank,
    files: ExportFiles,
    sink: Sink,
    *,
    known_calls: Callable[[pl.DataFrame], pl.DataFrame] = _as_exported,
    known_steps: Callable[[pl.DataFrame], pl.DataFrame] = _as_exported,
) -> tuple[Busy, tuple[int, int] | None]:
    """Write all tables of `recording` but `ranks` to `sink`, empty ones not at all.

    Args:
        recording: What was recorded; its events are used up.
        files: Where it was read, for issues.
        sink: Takes the rows.
        known_calls: Makes the rows of `collectives` from those of the export, if more is known about the rank.
        known_steps: Makes the rows of `steps`, likewise.

    Returns:
        What its kernels add up to; first start and last end of its events, in ns.
    """
    ranges, identity = recording.steps, recording.identity
    stated = recording.stated_steps() if ranges.is_empty() else set()
    calls = recording.described
    if calls is None:
        calls = described_calls(recording.communication, recording.calls, recording.packets, recording.groups)
    only_step = _only_step(ranges, stated, calls)

    def write(table: Table, frame: pl.DataFrame) -> None:
        if frame.is_empty():
            return
        if only_step is not None and "step" in frame.columns and table is not OPERATOR_TOTALS:
            frame = frame.with_columns(pl.col("step").fill_null(only_step))
        sink.write(table, frame)

    events = EventTables(recording, calls, are_stated=bool(stated))
    for table, frame in events.rows():
        write(table, frame)
    on_host = identity.device_kind == "cpu"
    collective_rows = collectives(calls, pl.concat(events.call_steps), recording.groups, on_host=on_host)
    collective_rows = with_peers(collective_rows, recording.groups, identity.rank)
    span = around([*events.spans, span_of(collective_rows)])
    if not collective_rows.is_empty() or recording.groups.names:
        identity.backend = identity.backend or "hccl"
    analysed = files.texts.get("communication") or files.analysis or files.path
    matrix = files.texts.get("matrix") or files.analysis or files.path
    if not recording.device_is_lost:  # a rank of which only the host is known is not to be compared with others
        device_calls = collective_rows.filter("on_device")
        write(STEPS, known_steps(steps_table(ranges, pl.concat([*events.busy, step_spans(device_calls)]), span)))
    write(COLLECTIVES, known_calls(collective_rows))
    write(GROUPS, recording.groups.frame())
    write(TRANSPORTS, transports(of_calls(recording.packets, collective_rows), analysed, sink))
    write(LINKS, links(of_calls(recording.links, collective_rows), recording.groups, matrix, sink))
    write(OPERATOR_TOTALS, events.totals.frame(recording.totals))
    write(STEP_TOTALS, recording.step_totals)
    write(ALLOCATIONS, recording.allocations)
    write(MEMORY_CURVE, recording.memory_curve)
    write(COUNTERS, recording.counters)
    return events.computed, span


def _only_step(ranges: pl.DataFrame, stated: set[int], calls: pl.DataFrame) -> int | None:
    """0 if the recording has no other step: work without a step belongs to it."""
    if not ranges.is_empty():
        return 0 if ranges["step"].to_list() == [0] else None
    alone = calls.filter(~pl.col("on_device") if not stated else pl.col("step").is_null())
    known = {*stated, *alone["step_analysed"].drop_nulls()}
    return None if known - {0} else 0
