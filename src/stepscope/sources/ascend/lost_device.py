"""Noticing that the device's part of a recording is gone: nothing recorded must not pass for nothing done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.sources.ascend.exported_rank import ExportedRank
from stepscope.sources.ascend.rank_info import RankInfo

if TYPE_CHECKING:
    from stepscope.sources.base import Sink

_REMEDY = "Export the profile again, or copy its files again."


def activities(identity: RankInfo) -> str | None:
    """The recorded activities, e.g. `CPU NPU`; None if the options do not have them."""
    stated = identity.options.get("activities")
    return str(stated) if stated else None


def report_lost_kernels(recording: ExportedRank, path: Path, sink: Sink) -> None:
    """Report a recording that should have compute kernels but has none."""
    if not recording.has_kernels:
        problem = "no compute kernels can be read, so what the device did is unknown"
        sink.issue("error", path, problem, _REMEDY, place="kernels")


def report_lost_device(recording: ExportedRank, path: Path, sink: Sink) -> None:
    """Report and mark a recording that should have device work but has none."""
    recording.device_is_lost = (
        not recording.has_kernels and recording.communication.is_empty() and recording.calls.is_empty()
    )
    if recording.device_is_lost:
        problem = "no work of the device can be read, so where its steps begin and end is unknown"
        sink.issue("error", path, problem, _REMEDY, place="steps")
