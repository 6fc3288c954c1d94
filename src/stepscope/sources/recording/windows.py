"""`windows.csv` and what the framework's profiler wrote of each window."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stepscope.errors import UnreadableInput
from stepscope.paths import stays_below
from stepscope.recording_format.layout import COMPLETE, window_directory
from stepscope.recording_format.rows import WINDOWS
from stepscope.sources.base import Report, Sink
from stepscope.sources.recording.lines import read_rows

_READ = ("window", "start_ns", "end_ns", "kind", "state", "files")


@dataclass(frozen=True)
class Window:
    """One finished window of operators; times by the rank's own clock."""

    number: int
    start_ns: int
    end_ns: int
    kind: str
    state: str
    directory: Path
    names: tuple[str, ...]
    """Its files, relative to `directory`."""

    @property
    def files(self) -> list[Path]:
        """Where its files should be."""
        return [self.directory / name for name in self.names]


def listed_windows(directory: Path, report: Report) -> Iterator[Window]:
    """The windows that `windows.csv` of a recording lists; damage of the list is reported."""
    for part in read_rows(directory, WINDOWS, report):
        for number, start, end, kind, state, files in part.select(*_READ).iter_rows():
            names = tuple(name for name in (files or "").split(";") if name and stays_below(name))
            yield Window(number, start, end, kind, state or COMPLETE, window_directory(directory, number), names)


def readable(window: Window, sink: Sink) -> bool:
    """Whether a window can be read; if not, the reason is reported."""
    if window.state != COMPLETE:
        not_recorded(window, sink)
        return False
    missing = [file for file in window.files if not file.exists()]
    if window.names and len(missing) == len(window.names):
        remedy = "Copy the recording with its whole directory `windows`"
        sink.issue("error", window.directory, f"the files of window {window.number} are missing", remedy)
        return False
    return bool(window.names)


def not_recorded(window: Window, sink: Sink) -> None:
    """Report that the recorder failed to record a window."""
    remedy = "The other windows are read; see recorder.log next to recording.json"
    sink.issue("warning", window.directory, f"window {window.number} could not be recorded", remedy)


def unread(window: Window, error: UnreadableInput | OSError, sink: Sink) -> None:
    """Report that a window cannot be read."""
    if isinstance(error, UnreadableInput):
        sink.issue("error", Path(error.path), error.problem, f"{error.remedy}. The other windows are read")
        return
    problem = f"window {window.number} cannot be read: {error.strerror or error}"
    sink.issue("error", window.directory, problem, "Check the file and its disk. The others are read")
