"""In the process that we attach to: starting a live worker that stays, or removing it at a later visit."""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from stepscope.errors import StepscopeError
from stepscope.live.attach.recording import training_framework
from stepscope.record import forks

if TYPE_CHECKING:
    from stepscope.live.attach.visitor import Visit
    from stepscope.live.worker.thread import LiveThread
    from stepscope.live.worker.tracker import LiveTracker

WELCOME_S = 2.0
"""How long to wait for proxy and manager to refuse a worker: two attempts to connect."""
_LOOK_S = 0.1
_MOST_ENDS = 64
_EARLIER = "_stepscope_attached"
"""Module by which a visit that stays is found; `NAME` in `visitor`."""


def work(visit: Visit, order: dict[str, Any]) -> None:
    """Start or remove a worker.

    Raises:
        StepscopeError: If there is one already, or none; or it cannot be started.
    """
    if order["what"] == "live":
        _start(visit, order)
    else:
        _remove(visit)


def _start(visit: Visit, order: dict[str, Any]) -> None:
    framework = training_framework(None)
    forks.borrow()  # before the worker is imported
    forks.in_child(visit.abandon)
    from stepscope.live.worker import api  # noqa: PLC0415 - see above

    if api.running() is not None:
        raise StepscopeError("a live worker runs in the process already")
    reason = visit.on_main(lambda: api.join(disk_limit_mb=order["disk_limit_mb"], framework=framework))
    worker = api.running()
    thread = None if worker is None else worker.thread
    if worker is None or thread is None:
        _leave()
        raise StepscopeError(f"no live worker could be started: {reason or 'it ended at once'}")
    visit.stays = True
    refused, is_linked = _welcome(thread)
    visit.say("live", rank=thread.facts.rank, directory=str(thread.directory), refused=refused, is_linked=is_linked)
    if order["aligns"]:
        _align(visit, worker.tracker)


def _welcome(thread: LiveThread) -> tuple[str, bool]:
    """Why the proxy refuses the worker, if it does within some time, and whether there is one. It accepts silently."""
    end_s = time.monotonic() + WELCOME_S
    while not thread.refused and time.monotonic() < end_s:
        time.sleep(_LOOK_S)
    return thread.refused, thread.is_linked


def _align(visit: Visit, tracker: LiveTracker) -> None:
    """Report when steps end, and move their numbers to those of the other ranks once told by how much."""
    ends: deque[tuple[int, int]] = deque(maxlen=_MOST_ENDS)
    shifts: list[int] = []

    def ended(number: int, now_ns: int) -> None:
        ends.append((number, now_ns))
        if shifts:  # between two steps, so that all of a step has the same number
            tracker.number += shifts.pop()

    tracker.after_step.append(ended)
    try:
        is_told = False
        while not is_told or shifts:
            for order in visit.orders(_LOOK_S):
                if order["type"] == "shift":
                    is_told = True
                    shifts.append(order["shift"])
                elif not is_told:
                    return
            if not is_told and ends:
                visit.say("steps", ends=[ends.popleft() for _ in range(len(ends))])
    except EOFError:
        pass
    finally:
        tracker.after_step.remove(ended)


def _remove(visit: Visit) -> None:
    earlier = getattr(sys.modules.get(_EARLIER), "visit", None)
    from stepscope.live.worker import api  # noqa: PLC0415 - see `_start`

    worker = api.running()
    if earlier is None:
        if worker is None:
            raise StepscopeError("no live worker runs in the process")
        raise StepscopeError(
            "the script itself has started its live worker. Switch it off with: stepscope live switch all=off"
        )
    if worker is not None:
        worker.backend.end_threads()
        visit.on_main(worker.backend.detach)
        api.stop_worker()
    _leave()
    earlier.forget_modules()
    visit.say("stopped")


def _leave() -> None:
    from stepscope.live.worker import api  # noqa: PLC0415 - see `_start`

    api.leave()
    forks.give_back()
