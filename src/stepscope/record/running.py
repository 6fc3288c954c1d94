"""Which Profiler records in this process: one at a time; and the one still running when the process ends is stopped."""

from __future__ import annotations

import atexit
import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Protocol

log = logging.getLogger("stepscope")


class RunningProfiler(Protocol):
    """What is needed here of a Profiler."""

    @property
    def is_by_environment(self) -> bool:
        """Whether the environment made it."""

    @property
    def directory(self) -> Path | None:
        """Where it records; None while there was nothing to record."""

    def stop(self) -> None:
        """Record no more."""

    def analyse(self) -> None:
        """Write files for people."""


class _Place:
    """Where the one that records is kept, so that one without a name in the script is not forgotten."""

    process = 0
    profiler: RunningProfiler | None = None
    watched = False


def take(profiler: RunningProfiler) -> None:
    """`profiler` begins to record.

    Raises:
        RuntimeError: If another one does, unless that was made by the environment and gives way.
    """
    other = current()
    if other is not None and other is not profiler:
        if not other.is_by_environment:
            raise RuntimeError(
                "Profiler: another Profiler records in this process. Call its stop() first, or use one for both"
            )
        log.warning("Profiler: the script's own Profiler takes over from the one that the environment started")
        other.stop()
    if not _Place.watched or _Place.process != os.getpid():
        _at_end()
    _Place.process, _Place.profiler, _Place.watched = os.getpid(), profiler, True


def leave(profiler: RunningProfiler) -> None:
    """`profiler` does not record any more."""
    if _Place.profiler is profiler:
        _Place.profiler = None


def current() -> RunningProfiler | None:
    """The Profiler that records in this process, which may be a forked copy of one where another does."""
    return _Place.profiler if _Place.process == os.getpid() else None


def _at_end() -> None:
    """Have `_end` called when the process ends, also where it ends as multiprocessing's children do."""
    atexit.register(_end)
    util = sys.modules.get("multiprocessing.util")
    process = sys.modules.get("multiprocessing.process")
    if util is not None and process is not None and process.parent_process() is not None:
        util.Finalize(None, _end, exitpriority=100)


def _end() -> None:
    """The process ends: what is recorded is completed; what the environment started is analysed as well."""
    profiler = current()
    if profiler is None:
        return
    profiler.stop()
    if profiler.is_by_environment and profiler.directory is not None:
        with suppress(KeyboardInterrupt):  # said where it happens; the process ends in any case
            profiler.analyse()
