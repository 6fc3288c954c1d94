"""The Profiler that records in this process: one at a time. One still running when the process ends is stopped."""

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
    """The part of a Profiler that is used here."""

    is_by_environment: bool
    """Whether the environment created it."""

    @property
    def directory(self) -> Path | None:
        """Where it records; None until something is recorded."""

    def stop(self) -> None:
        """Stop recording."""

    def analyse(self) -> None:
        """Write files for people."""


class _Place:
    """Holds the recording Profiler, so that one the script keeps no reference to is not lost."""

    process = 0
    profiler: RunningProfiler | None = None


def take(profiler: RunningProfiler) -> None:
    """`profiler` begins to record.

    Raises:
        RuntimeError: If another one records, unless the environment created that one: it yields.
    """
    other = current()
    if other is not None and other is not profiler:
        if not other.is_by_environment:
            raise RuntimeError(
                "Profiler: another Profiler records in this process. Call its stop() first, or use one for both"
            )
        log.warning("Profiler: the script's own Profiler replaces the one started from the environment")
        other.stop()
    if _Place.process != os.getpid():
        _at_end()
    _Place.process, _Place.profiler = os.getpid(), profiler


def leave(profiler: RunningProfiler) -> None:
    """`profiler` has stopped recording."""
    if _Place.profiler is profiler:
        _Place.profiler = None


def current() -> RunningProfiler | None:
    """The Profiler that records in this process; one inherited by a fork does not count."""
    return _Place.profiler if _Place.process == os.getpid() else None


def _at_end() -> None:
    """Call `_end` when the process ends, also in children of multiprocessing, which skip atexit."""
    atexit.register(_end)
    util = sys.modules.get("multiprocessing.util")
    process = sys.modules.get("multiprocessing.process")
    if util is not None and process is not None and process.parent_process() is not None:
        util.Finalize(None, _end, exitpriority=100)


def _end() -> None:
    """The process ends: complete the recording, and analyse it if the environment started it."""
    profiler = current()
    if profiler is None:
        return
    profiler.stop()
    if profiler.is_by_environment and profiler.directory is not None:
        with suppress(KeyboardInterrupt):  # already logged; the process ends anyway
            profiler.analyse()
