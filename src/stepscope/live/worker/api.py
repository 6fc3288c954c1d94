"""Starting and stopping the live worker of this process."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from typing import Any

from stepscope.errors import StepscopeError
from stepscope.live.store import DEFAULT_LIMIT_MB, limit_from_environment
from stepscope.live.switches import DEFAULT, InvalidSwitch, Switches, initial
from stepscope.live.worker.worker import Worker
from stepscope.record import endings, forks
from stepscope.record.environment import EXTERNAL_VARIABLE, FRAMEWORKS

log = logging.getLogger("stepscope")

_FRAMEWORKS = {"pt": "torch", "ms": "mindspore", **{name: name for name in FRAMEWORKS}}
"""MindCluster's names of frameworks, and ours."""


class _Running:
    """The worker of this process."""

    worker: Worker | None = None
    ends = False
    """Whether the end of the process stops it."""


def start_worker(rank: int | None = None, disk_limit_mb: int = DEFAULT_LIMIT_MB, framework: str | None = None) -> bool:
    """Trace this training process from now on, to be switched, watched and stored by the live parts of stepscope.

    Call it once the rank is known, before the training loop. It never raises and never waits for other processes. A
    second call changes nothing but the rank.

    Args:
        rank: Global rank. Default: as the framework or the launcher knows it.
        disk_limit_mb: Cap of all records below the base directory, in MiB.
        framework: `torch` (or `pt`) or `mindspore` (or `ms`); only needed if both are imported.

    Returns:
        Whether the worker runs; if not, the reason is logged.
    """
    try:
        reason = _mistake(rank, disk_limit_mb, framework)
        if not reason:
            name = None if framework is None else _FRAMEWORKS[framework]
            reason = _start(rank, disk_limit_mb, name, waits=False)
    except StepscopeError as error:
        reason = str(error)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    if reason:
        log.warning("live: the worker was not started: %s. Training continues", reason)
    return not reason


def stop_worker() -> bool:
    """Stop tracing this process and remove the hooks; everything is then on disk. Never raises.

    Returns:
        Whether a worker was running.
    """
    worker, _Running.worker = running(), None
    if worker is None:
        return False
    try:
        worker.stop()
    except Exception as error:
        log.warning("live: the worker could not be stopped in order", exc_info=error)
    return True


def step() -> None:
    """Mark the end of a step, in loops whose optimizer is not one of the framework's. From the first call on, steps end
    here instead of with the optimizer. Without a worker, nothing happens."""
    worker = running()
    if worker is not None:
        worker.tracker.user_step()


def start_from_environment(framework: str) -> str:
    """The environment asks for a worker, and the framework was just imported: wait for training. May raise anything.

    Returns:
        Why there is no worker; empty if there is one.
    """
    return _start(None, limit_from_environment(), framework, waits=True)


def join(*, disk_limit_mb: int | None = None, framework: str | None = None) -> str:
    """Start a worker in a process whose training is under way. May raise anything.

    Returns:
        Why there is no worker; empty if there is one.
    """
    return _start(None, disk_limit_mb or limit_from_environment(), framework, waits=False, joins=True)


def running() -> Worker | None:
    """The worker of this process, if it has one."""
    worker = _Running.worker
    return worker if worker is not None and worker.process == os.getpid() else None


def _mistake(rank: Any, disk_limit_mb: Any, framework: Any) -> str:
    if rank is not None and (isinstance(rank, bool) or not isinstance(rank, int) or rank < 0):
        return f"rank must be a number from 0, not {rank!r}"
    if isinstance(disk_limit_mb, bool) or not isinstance(disk_limit_mb, int) or disk_limit_mb <= 0:
        return f"disk_limit_mb must be a number of MiB above 0, not {disk_limit_mb!r}"
    if framework is not None and (not isinstance(framework, str) or framework not in _FRAMEWORKS):
        return f"framework must be one of {', '.join(_FRAMEWORKS)}, not {framework!r}"
    return ""


def _start(rank: int | None, limit_mb: int, framework: str | None, *, waits: bool, joins: bool = False) -> str:
    known = running()
    if known is not None:
        if not waits:
            known.begin(rank, limit_mb)
        return ""
    if os.environ.get(EXTERNAL_VARIABLE):
        return f"{EXTERNAL_VARIABLE} is set, so another profiler records"
    from stepscope.record.profiler import backend_for  # noqa: PLC0415 - only when a worker is started

    backend = backend_for(framework)
    if backend.in_data_worker():
        return "" if waits else "this is a helper process (data loader, scheduler)"
    _Running.worker = Worker(backend, _initial(), limit_mb, rank, waits=waits, joins=joins, begins=at_end)
    return ""


def _initial() -> Switches:
    try:
        return initial()
    except InvalidSwitch as error:
        log.warning("live: %s; all kinds but communication are recorded", error)
        return DEFAULT


def at_end() -> None:
    """Write everything when the process ends, also in children of multiprocessing, which skip atexit."""
    if _Running.ends:
        return
    _Running.ends = True
    endings.at_end(_end)


def leave() -> None:
    """No worker runs in this process any more: nothing is called when it ends."""
    endings.not_at_end(_end)
    _Running.ends = False


def _end() -> None:
    with suppress(KeyboardInterrupt):
        stop_worker()


@forks.in_child
def _in_child() -> None:
    worker = _Running.worker
    if worker is not None:
        worker.in_child()
        if worker.process != os.getpid():
            _Running.worker = None
    _Running.ends = False
