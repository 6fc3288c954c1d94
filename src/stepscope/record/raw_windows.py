"""Windows of an Ascend device that are still raw data. Used in training processes, so it imports nothing heavy."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from stepscope.recording_format.layout import ASCEND, window_directory
from stepscope.recording_format.rows import WINDOWS

_OUTPUT = "ASCEND_PROFILER_OUTPUT"


def raw_windows(recording: Path) -> Iterator[Path]:
    """The finished windows of a recording whose device data is not exported yet."""
    try:
        with (recording / WINDOWS.name).open(encoding="utf-8", errors="replace", newline="") as file:
            listed = [row["window"] for row in csv.DictReader(file) if row.get("kind") == ASCEND]
    except (OSError, KeyError, csv.Error):
        return
    for number in filter(str.isdecimal, listed):
        directory = window_directory(recording, int(number))
        if any(is_raw(found) for found in written_by_device(directory)):
            yield directory


def is_raw(written: Path) -> bool:
    """Whether there is no export; a failed one leaves an empty directory."""
    output = written / _OUTPUT
    return not (output.is_dir() and any(output.iterdir()))


def written_by_device(window: Path) -> list[Path]:
    """Directories that the device's profiler wrote in a window."""
    return sorted(path for ending in ("pt", "ms") for path in window.glob(f"*_ascend_{ending}"))
