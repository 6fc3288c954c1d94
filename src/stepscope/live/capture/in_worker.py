"""What a training process does on request of the manager: profiles, dumps and active checks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from stepscope.live.capture.checks import ActiveCheck
from stepscope.live.capture.dumping import dump
from stepscope.live.capture.profiling import StepProfile
from stepscope.live.messages import Capture, Captured, Check, Checked, Dump, Message
from stepscope.live.places import base_directory, task_id
from stepscope.record.backend import Backend
from stepscope.record.forks import in_child
from stepscope.record.process_facts import own_thread
from stepscope.record.steps import StepTracker

log = logging.getLogger("stepscope")

Send = Callable[[Message], None]
Tell = Callable[[Captured | Checked], None]


class _Running:
    """The request that is being worked on; a dump is never in the way of the others."""

    lock = threading.Lock()
    request: StepProfile | ActiveCheck | None = None


def begin(
    message: Capture | Check | Dump,
    tracker: StepTracker,
    send: Send,
    *,
    backend: Backend | None = None,
    directory: Path | None = None,
    rank: int | None = None,
) -> None:
    """Begin to work on a request. Returns at once and never raises; `send` gets the answer later, on another thread.

    Args:
        message: The request.
        tracker: Of the live worker, with `after_step`: a list of functions that it calls on the training thread right
            after a step ended, with the number of the step and the time (`time.perf_counter_ns`).
        send: Takes the answer.
        backend: The worker's. Default: a new one of the imported framework.
        directory: Of this rank's records. Default: as the worker chooses it from the environment.
        rank: As the worker has registered, which the script may have told it alone. Default: as the framework knows it.
    """

    def tell(answer: Captured | Checked) -> None:
        send(answer if rank is None else msgspec.structs.replace(answer, rank=rank))

    try:
        known = backend if backend is not None else _backend()
        known_rank = known.identity().rank or 0
        room = directory if directory is not None else base_directory() / task_id() / str(known_rank)
        if isinstance(message, Dump):
            own_thread(_work, "stepscope-dump", message, lambda: dump(message, known_rank, room), tell).start()
            return
        request: StepProfile | ActiveCheck
        if isinstance(message, Capture):
            request = StepProfile(message, tracker, known, room)
        else:
            request = ActiveCheck(message, tracker, known)
        with _Running.lock:
            busy, _Running.request = _Running.request, _Running.request or request
        if busy is not None:
            tell(_refusal(message, known_rank, "this rank is still busy with an earlier capture or check"))
            return
        own_thread(_work, "stepscope-capture", message, lambda: _alone(request), tell).start()
    except Exception as error:
        tell(_failed(message, error))


def _alone(request: StepProfile | ActiveCheck) -> Captured | Checked:
    try:
        return request.run()
    finally:
        _Running.request = None


def _work(message: Capture | Check | Dump, work: Callable[[], Captured | Checked], tell: Tell) -> None:
    try:
        answer = work()
    except Exception as error:  # who asked must not wait for an answer that never comes
        answer = _failed(message, error)
    tell(answer)


def _failed(message: Capture | Check | Dump, error: Exception) -> Captured | Checked:
    log.warning("a request of the manager failed", exc_info=error)
    return _refusal(message, 0, f"{type(error).__name__}: {error}")


def _refusal(message: Capture | Check | Dump, rank: int, reason: str) -> Captured | Checked:
    if isinstance(message, Check):
        return Checked(rank, message.check, error=reason)
    return Captured(rank, message.capture, error=reason)


def _backend() -> Backend:
    from stepscope.record.profiler import backend_for  # noqa: PLC0415 - only when something is captured

    return backend_for()


@in_child
def _in_child() -> None:
    _Running.lock = threading.Lock()
    request, _Running.request = _Running.request, None
    if request is not None:
        request.forget()
