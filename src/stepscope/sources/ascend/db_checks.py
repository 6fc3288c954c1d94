"""Report tables that a recording should have, so that missing data does not look like an idle rank."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.sources.ascend.database import DATABASE_ERRORS, REMEDY, Database, open_database
from stepscope.sources.ascend.exported_rank import ExportedRank
from stepscope.sources.ascend.lost_device import activities

if TYPE_CHECKING:
    from stepscope.sources.base import Sink

EVENT_TABLES = ("TASK", "PYTORCH_API", "CANN_API", "COMMUNICATION_OP", "STRING_IDS")
ANALYSIS_TABLES = ("CommAnalyzerTime", "CommAnalyzerBandwidth", "CommAnalyzerMatrix", "StepTraceTime")


@dataclass(frozen=True)
class _Essential:
    """A table that a recording of its kind always has, and what is unknown without it."""

    table: str
    lost: str


_NAMES = _Essential("STRING_IDS", "all names, and so operators and communication calls,")
_DEVICE = (
    _Essential("TASK", "all device work except communication"),
    _Essential("COMPUTE_TASK_INFO", "which device work is a compute kernel"),
)
_HOST = (
    _Essential("PYTORCH_API", "the framework's operators"),
    _Essential("CANN_API", "which host call launched which kernel"),
)
_CALLS = _Essential("COMMUNICATION_OP", "communication calls on the device")
_STEPS = _Essential("STEP_TIME", "where steps begin and end (no range on the host marks them either)")


def is_usable(database: Database, sink: Sink, place: str) -> bool:
    """Whether any table of a recording has rows; if not, report this as the reason why table `place` is missing."""
    if any(database.is_filled(table) for table in (*EVENT_TABLES, *ANALYSIS_TABLES)):
        return True
    why = "is empty" if _is_empty(database.path) else "has no filled table of a recording"
    sink.issue("error", database.path, f"{why}; everything it should hold is lost", REMEDY, place=place)
    return False


def check_events(database: Database, recording: ExportedRank, *, has_marks: bool = False) -> None:
    """Report missing or empty tables, and what is unknown without them.

    Args:
        database: What was read.
        recording: What it holds.
        has_marks: Whether steps are known from elsewhere.
    """
    identity = recording.identity
    wanted = [_NAMES]
    recorded = activities(identity) or "CPU NPU"
    if "NPU" in recorded:
        wanted += _DEVICE
        if _communicates(recording):
            wanted.append(_CALLS)
    if "CPU" in recorded and identity.framework == "pytorch":
        wanted += _HOST
    if not has_marks and not database.has("STEP_TIME"):
        if recording.steps.is_empty():
            wanted.append(_STEPS)
        elif identity.framework == "pytorch":
            database.note(
                "STEP_TIME", "is missing; steps are taken from the host's ProfilerStep ranges", "Nothing to do."
            )
    for essential in wanted:
        if not database.is_filled(essential.table):
            state = "is empty" if database.has(essential.table) else "is missing"
            database.report(essential.table, f"{state}, so {essential.lost} cannot be known")
    if not recording.has_kernels and all(database.is_filled(essential.table) for essential in _DEVICE):
        database.report("COMPUTE_TASK_INFO", "has no row that matches a usable row of TASK: no kernels are known")


def _communicates(recording: ExportedRank) -> bool:
    """Whether the rank belongs to others."""
    members = recording.groups.members.values()
    return (recording.identity.world_size or 0) > 1 or any(len(ranks or ()) > 1 for ranks in members)


def _is_empty(path: Path) -> bool:
    try:
        return path.stat().st_size == 0
    except OSError:
        return False


class _Silent:
    """A sink for a look at a file that may not be ours."""

    def issue(self, *_: object, **__: object) -> None: ...


def looks_ours(file: Path) -> bool:
    """Whether a database has the tables of an export."""
    try:
        with open_database(file, _Silent()) as database:  # type: ignore[arg-type]
            events = sum(database.has(table) for table in EVENT_TABLES)
            return events >= 2 or any(database.has(table) for table in ANALYSIS_TABLES)
    except DATABASE_ERRORS:
        return False
