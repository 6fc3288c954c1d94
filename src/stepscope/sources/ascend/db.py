"""Ascend rank directories in the database export: SQLite files of events and of the communication analysis."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from stepscope.errors import UnreadableInput
from stepscope.sources.ascend import db_counters, db_device, db_extras, db_host
from stepscope.sources.ascend.assemble import write_tables
from stepscope.sources.ascend.checks import report_lost_device
from stepscope.sources.ascend.database import DATABASE_ERRORS, REMEDY, Database, open_database
from stepscope.sources.ascend.db_checks import check_events, is_usable, report_unfinished
from stepscope.sources.ascend.exported_rank import ExportedRank
from stepscope.sources.ascend.framework_files import cpu_executions, take_framework, write_data_preparation
from stepscope.sources.ascend.marked_calls import read_marked_calls
from stepscope.sources.ascend.rank_files import ExportFiles, sort_files
from stepscope.sources.ascend.rank_info import read_rank_info, take_rank_table
from stepscope.sources.ascend.steps import clean_ranges, step_ranges
from stepscope.sources.ascend.timeline import Timeline
from stepscope.sources.base import Input, Sink
from stepscope.tables import RANKS


def read_database(item: Input, sink: Sink) -> None:
    """Read the database export of one rank."""
    recording, files = take_database(item, sink)
    own = recording.own_steps
    _, span = write_tables(recording, files, sink, known_steps=lambda rows: rows if own is None else own)
    take_rank_table(recording.identity, item, sink)
    sink.write(RANKS, recording.identity.frame(span))
    write_data_preparation(files, sink)


def take_database(item: Input, sink: Sink, *, has_marks: bool = False) -> tuple[ExportedRank, ExportFiles]:
    """What the database export of one rank holds, and the files that hold it.

    Args:
        item: The export.
        sink: Takes issues about damage.
        has_marks: Whether steps are known from elsewhere, so that the export need not have them.

    Raises:
        UnreadableInput: If nothing of it can be read.
    """
    files = sort_files(item.path, item.files)
    if len(item.files) == 1 and files.database is None and files.analysis is None:
        files = ExportFiles(path=item.path, database=item.files[0])
    if files.has_text:
        problem = "holds both a text and a database export; the database is read"
        sink.issue("note", item.path, problem, "Nothing to do: both hold the same recording.")
    identity, groups = read_rank_info(files, item.source, sink)
    recording = ExportedRank(identity, groups, Timeline(sink.scratch))
    read = [
        _with(files.database, lambda database: _take_events(recording, database, has_marks), sink, "kernels"),
        _with(files.analysis, lambda database: _take_analysis(recording, database), sink, "links"),
    ]
    if not any(read):
        remedy = "Copy it again; if it is truncated, export the profile again"
        raise UnreadableInput(files.database or item.path, "is empty or not a readable database", remedy)
    executions = cpu_executions(files, sink)
    if executions is not None:
        operators = executions["name"].unique().implode()
        if not any(frame["name"].is_in(operators).any() for frame in recording.timeline.frames("host", ["name"])):
            recording.timeline.add("host", executions)
    take_framework(recording, files, sink, has_device=True)
    if "NPU" in (identity.activities or "NPU"):
        report_lost_device(recording, files.database or item.path, sink)
    return recording, files


def _with(path: Path | None, take: Callable[[Database], None], sink: Sink, holds: str) -> bool:
    """Take what a database holds; False if there is none or it cannot be read: then the table `holds` is missing."""
    if path is None:
        return False
    try:
        with open_database(path, sink) as database:
            report_unfinished(path, sink)
            if not is_usable(database, sink, holds):
                return False
            take(database)
    except DATABASE_ERRORS as error:
        sink.issue("error", path, f"cannot be read: {error}", REMEDY, place=holds)
        return False
    return True


def _take_events(recording: ExportedRank, database: Database, has_marks: bool) -> None:
    groups = db_extras.read_identity(database, recording.identity)
    if groups is not None and not recording.groups.names:
        recording.groups = groups
    timeline = recording.timeline
    recording.operator_starts = db_host.read_operators(database, timeline)
    recording.steps = step_ranges(timeline.frames("host", ["name", "start_ns", "duration_ns"]))
    if recording.steps.is_empty():
        recording.steps = clean_ranges(database.ranges("STEP_TIME", {"step": "id"}))
    recording.own_steps = db_extras.read_own_steps(database)
    db_host.read_api(database, timeline)
    timeline.add("host", db_host.read_collections(database))
    timeline.add("host", db_host.read_marks(database))
    tasks = db_device.read_tasks(database)
    kernels = db_device.read_compute(database, tasks, timeline)
    timeline.add("tasks", db_device.read_other_tasks(database, tasks, kernels, recording.groups))
    recording.communication = db_device.read_calls(database)
    if recording.communication.is_empty():
        recording.communication = read_marked_calls(database, tasks)
    if recording.identity.device_kind != "cpu":  # there the calls are the host's, and no work of a device
        timeline.add("communication", recording.communication)
    recording.allocations = db_extras.read_allocations(database)
    recording.memory_curve = db_extras.read_memory_curve(database)
    recording.counters = db_counters.read_counters(database)
    if database.has("CommAnalyzerTime"):
        _take_analysis(recording, database)
    check_events(database, recording, has_marks=has_marks)


def _take_analysis(recording: ExportedRank, database: Database) -> None:
    recording.calls, recording.packets, recording.links, recording.step_totals = db_extras.read_analysis(database)
