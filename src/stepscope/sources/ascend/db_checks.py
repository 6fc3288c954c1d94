"""Report tables that a recording should have, so that missing data does not look like an idle rank."""

from __future__ import annotations

from pathlib import Path

from stepscope.sources.ascend.database import DATABASE_ERRORS, REMEDY, Database, open_database
from stepscope.sources.ascend.exported_rank import ExportedRank
from stepscope.sources.base import Sink
from stepscope.sources.sinks import SilentSink

EVENT_TABLES = ("TASK", "PYTORCH_API", "CANN_API", "COMMUNICATION_OP", "STRING_IDS")
ANALYSIS_TABLES = ("CommAnalyzerTime", "CommAnalyzerBandwidth", "CommAnalyzerMatrix", "StepTraceTime")


_DEVICE = ("TASK", "COMPUTE_TASK_INFO")
_HOST = ("PYTORCH_API", "CANN_API")
_UNKNOWN = {
    "STRING_IDS": "all names, and so operators and communication calls,",
    "TASK": "all device work except communication",
    "COMPUTE_TASK_INFO": "which device work is a compute kernel",
    "PYTORCH_API": "the framework's operators",
    "CANN_API": "which host call launched which kernel",
    "COMMUNICATION_OP": "communication calls on the device",
    "STEP_TIME": "where steps begin and end (no range on the host marks them either)",
}
"""What is unknown without a table."""


def is_usable(database: Database, sink: Sink, place: str) -> bool:
    """Whether any table of a recording has rows; if not, report this as the reason why table `place` is missing."""
    if any(database.is_filled(table) for table in (*EVENT_TABLES, *ANALYSIS_TABLES)):
        return True
    why = "has no filled table of a recording" if database.path.stat().st_size else "is empty"
    sink.issue("error", database.path, f"{why}; everything it should hold is lost", REMEDY, place=place)
    return False


def report_unfinished(path: Path, sink: Sink) -> None:
    """Report changes that a program has not yet put into the database: files are read as they stand."""
    for ending in ("-wal", "-journal"):
        beside = path.with_name(path.name + ending)
        if beside.is_file() and beside.stat().st_size:
            problem = f"changes in {beside.name} are not part of it yet and are not read; rows may be missing or old"
            sink.issue("warning", path, problem, "Let the program that writes it finish, or export the profile again.")


def check_events(database: Database, recording: ExportedRank, *, has_marks: bool = False) -> None:
    """Report missing or empty tables, and what is unknown without them (`has_marks`: see `take_database`)."""
    identity = recording.identity
    wanted = ["STRING_IDS"]
    recorded = identity.activities or "CPU NPU"
    if "NPU" in recorded:
        wanted += _DEVICE
        if _communicates(recording) and recording.communication.is_empty():
            wanted.append("COMMUNICATION_OP")
    if "CPU" in recorded and identity.framework == "pytorch":
        wanted += _HOST
    if not has_marks and not database.has("STEP_TIME"):
        if recording.steps.is_empty():
            wanted.append("STEP_TIME")
        elif identity.framework == "pytorch":
            database.note(
                "STEP_TIME", "is missing; steps are taken from the host's ProfilerStep ranges", "Nothing to do."
            )
    for table in wanted:
        if not database.is_filled(table):
            state = "is empty" if database.has(table) else "is missing"
            database.report(table, f"{state}, so {_UNKNOWN[table]} cannot be known")
    if not recording.has_kernels and all(map(database.is_filled, _DEVICE)):
        database.report("COMPUTE_TASK_INFO", "has no row that matches a usable row of TASK: no kernels are known")


def _communicates(recording: ExportedRank) -> bool:
    """Whether the rank belongs to others."""
    members = recording.groups.members.values()
    return (recording.identity.world_size or 0) > 1 or any(len(ranks or ()) > 1 for ranks in members)


def looks_ours(file: Path) -> bool:
    """Whether a database has the tables of an export."""
    try:
        with open_database(file, SilentSink()) as database:
            events = sum(database.has(table) for table in EVENT_TABLES)
            return events >= 2 or any(database.has(table) for table in ANALYSIS_TABLES)
    except DATABASE_ERRORS:
        return False
