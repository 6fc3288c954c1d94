"""Writing a window's trace without delaying training.

Kineto converts its results to JSON while holding the GIL, about 2 us per event: up to a second for a window of a busy
job, during which the training loop cannot run. So a forked child does that, as data loaders do: it has the results in
its copy of the memory, writes, compresses and exits. Measured for 166,000 events (torch 2.13, CPU): training stands
still for 0.41 s if a thread writes, for 0.23 s with a child, of which 0.03 s are the fork and the rest is freeing the
results, which cannot be avoided. Processor time is the same.

The child touches neither the device nor any lock of the framework except those of its results; if it hangs
nevertheless, it is killed and the waiting thread writes the trace itself. It dies with that thread.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isal import igzip

from stepscope.record.backend import Written
from stepscope.record.files import new_private
from stepscope.record.torch.forked import exporting

log = logging.getLogger("stepscope")

TRACE = "trace.json.gz"
PATIENCE_S = 120.0
"""A child that takes longer is considered hung: writing takes about a second, up to a minute under heavy load."""
_NICENESS = 10
_PR_SET_PDEATHSIG = 1
_COMPRESSION = 1
_RANGE = b'"ph": "X"'
"""Occurs in each range of a trace as Kineto writes it."""

# Since Python 3.12, forking a process with threads warns; here it is intended (see the module's docstring).
warnings.filterwarnings("ignore", r".*multi-threaded, use of fork.*", DeprecationWarning, r"stepscope\.record\.torch")


def export(results: Any, directory: Path, patience_s: float = PATIENCE_S) -> Written:
    """Write the trace of a window as `trace.json.gz`.

    Args:
        results: Kineto's results: an object with `save(path)`.
        directory: The window's directory.
        patience_s: How long the child may take.

    Raises:
        OSError: If they cannot be written.
    """
    events = in_child(lambda: write_trace(results, directory), patience_s)
    if events is None and not (directory / TRACE).exists():
        log.info("Profiler: a thread writes a window because the child process failed to")
        events = write_trace(results, directory)
    return [TRACE], events


def write_trace(results: Any, directory: Path) -> int:
    """Write the compressed trace, atomically, and return the number of its events.

    Raises:
        OSError: If it cannot be written; no draft is left.
    """
    raw, draft = directory / ".trace.json", directory / f".{TRACE}"
    try:
        results.save(str(raw))
        with (
            raw.open("rb") as source,
            os.fdopen(new_private(draft), "wb") as target,
            igzip.open(target, "wb", compresslevel=_COMPRESSION) as packed,
        ):
            ranges = 0  # those cut by the border of two pieces are not counted
            while piece := source.read(1 << 20):
                ranges += piece.count(_RANGE)
                packed.write(piece)
        draft.replace(directory / TRACE)
        return ranges
    finally:
        raw.unlink(missing_ok=True)
        draft.unlink(missing_ok=True)


def in_child(work: Callable[[], int], patience_s: float) -> int | None:
    """Do `work`, which leaves its result on disk and returns a number, in a forked child, and wait for it on this
    thread, which may block. A child that takes longer than `patience_s` is killed.

    Returns:
        The number; None if the child failed.
    """
    libc, parent = ctypes.CDLL(None), os.getpid()
    # the child keeps all signals blocked: those for the job must not run the script's handlers a second time in it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    exporting.now = True
    read_end, write_end = os.pipe()
    try:
        child = os.fork()
        if child == 0:
            _be_child(work, libc, parent, write_end)
    except OSError as error:
        os.close(read_end)
        log.info("Profiler: no process could be forked: %s", error)
        return None
    finally:
        os.close(write_end)
        exporting.now = False
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    try:
        return int(os.read(read_end, 32) or b"0") if _wait(child, patience_s) else None
    finally:
        os.close(read_end)


def _be_child(work: Callable[[], int], libc: Any, parent: int, write_end: int) -> None:
    status = 1
    try:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.nice(_NICENESS)
        os.umask(0o077)
        if os.getppid() == parent:
            os.write(write_end, str(work()).encode())
            status = 0
    finally:
        os._exit(status)  # never run the parent's exit handlers


def _wait(child: int, patience_s: float) -> bool:
    end = time.monotonic() + patience_s
    pause_s = 0.005
    while time.monotonic() < end:
        try:
            pid, status = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:  # other code waits for all children of this process
            return False
        if pid:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 0.1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False
