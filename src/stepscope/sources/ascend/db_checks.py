"""What a database lacks that its recording should hold: nothing recorded must not pass for nothing done."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.sources.ascend.database import REMEDY, Database
from stepscope.sources.ascend.exported_rank import ExportedRank
from stepscope.sources.ascend.lost_device import activities

if TYPE_CHECKING:
    from stepscope.sources.base import Sink

EVENT_TABLES = ("TASK", "PYTORCH_API", "CANN_API", "COMMUNICATION_OP", "STRING_IDS")
ANALYSIS_TABLES = ("CommAnalyzerTime", "CommAnalyzerBandwidth", "CommAnalyzerMatrix", "StepTraceTime")


@dataclass(frozen=True)
class _Essential:
    """A table that a recording of its kind always has, and what is not known without it."""

    table: str
    lost: str


_NAMES = _Essential("STRING_IDS", "all names, and with them operators and communication calls")
_DEVICE = (
    _Essential("TASK", "all work of the device except communication"),
    _Essential("COMPUTE_TASK_INFO", "which work of the device is compute kernels"),
)
_HOST = (
    _Essential("PYTORCH_API", "the framework's operators"),
    _Essential("CANN_API", "which host call launched which kernel"),
)
_CALLS = _Essential("COMMUNICATION_OP", "communication calls as the device ran them")
_STEPS = _Essential("STEP_TIME", "where steps begin and end, which no range on the host tells either,")


def is_usable(database: Database, sink: Sink, place: str) -> bool:
    """Whether any table of a recording has rows; if none has, that is told as why the table `place` is missing."""
    if any(database.is_filled(table) for table in (*EVENT_TABLES, *ANALYSIS_TABLES)):
        return True
    why = "is empty" if _is_empty(database.path) else "has no table of a recording with any row"
    sink.issue("error", database.path, f"{why}; all that it should hold is lost", REMEDY, place=place)
    return False


def check_events(database: Database, recording: ExportedRank, *, has_marks: bool = False) -> None:
    """Tell which tables are missing or empty, and what is not known without them.

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
            database.tell(essential.table, f"{state}; without it {essential.lost} cannot be known")
    if not recording.has_kernels and all(database.is_filled(essential.table) for essential in _DEVICE):
        database.tell("COMPUTE_TASK_INFO", "has no row that belongs to a usable one of TASK: no kernels are known")


def _communicates(recording: ExportedRank) -> bool:
    """Whether the rank belongs to others."""
    members = recording.groups.members.values()
    return (recording.identity.world_size or 0) > 1 or any(len(ranks or ()) > 1 for ranks in members)


def _is_empty(path: Path) -> bool:
    try:
        return path.stat().st_size == 0
    except OSError:
        return False
