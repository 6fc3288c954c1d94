"""Names of files and directories of a recording."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

RECORDINGS = "recording"
"""The directory in `profiler` that contains the recordings."""
ABOUT = "recording.json"
"""A directory with this file is a recording."""
RECORDER_LOG = "recorder.log"
ANALYSIS_LOG = "analysis.log"
"""Output of the exporter."""
WINDOWS = "windows"
"""The directory of the operator windows."""
MINDDATA = "minddata"
"""The directory of MindSpore's dataset files, with a directory for each pipeline and span."""
RUNTIME = "runtime"
"""The directory of MindSpore's runtime detail."""

KINETO: Final = "kineto"
MINDSPORE_CPU: Final = "mindspore_cpu"
ASCEND: Final = "ascend"

COMPLETE, FAILED = "complete", "failed"
"""States of a window."""

_RANK = re.compile(r"rank-(\d{1,9})_")


def recording_name(rank: int, host: str, pid: int, started_ns: int) -> str:
    """The name of a recording's directory: `rank-<R>_<host>-<pid>_<YYYYmmddHHMMSSmmm>`."""
    plain = re.sub(r"[^A-Za-z0-9]+", "-", host).strip("-") or "host"
    stamp = datetime.fromtimestamp(started_ns / 1e9, timezone.utc).strftime("%Y%m%d%H%M%S%f")[:-3]
    return f"rank-{rank}_{plain}-{pid}_{stamp}"


def rank_in_name(name: str) -> int | None:
    """The rank in the name of a recording's directory; None if there is none."""
    named = _RANK.match(name)
    return int(named[1]) if named else None


def stamp_in_name(name: str) -> str:
    """The start time in the name of a recording's directory."""
    return name.rsplit("_", 1)[-1]


def window_directory(recording: Path, number: int) -> Path:
    """The directory of an operator window's files."""
    return recording / WINDOWS / f"{number:06d}"


def minddata_directories(recording: Path) -> list[Path]:
    """The directories of MindSpore's dataset files, in order of time."""
    try:
        found = [entry for entry in (recording / MINDDATA).iterdir() if entry.is_dir()]
    except OSError:
        return []
    return sorted(found, key=lambda entry: (int(entry.name) if entry.name.isdecimal() else 0, entry.name))
