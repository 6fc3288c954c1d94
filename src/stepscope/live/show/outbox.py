"""A bounded queue with a thread that delivers: what follows a manager must never make it wait."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from stepscope.present import printable

log = logging.getLogger("stepscope")
T = TypeVar("T")

MOST_WAITING = 4096
"""Events that wait for delivery at most: one of each rank of a large job."""
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 30.0
"""Between attempts, doubled after each."""


class CannotDeliver(Exception):
    """An attempt has failed.

    Args:
        reason: Why.
        again: Whether another attempt may succeed.
    """

    def __init__(self, reason: str, *, again: bool) -> None:
        super().__init__(reason)
        self.again = again


class Outbox(Generic[T]):
    """Delivers in order, one at a time, from its own thread.

    A failure is logged once until a delivery succeeds again. What cannot be delivered is counted in `lost`.

    Args:
        name: For the log, e.g. `webhook https://host/path`.
        deliver: Delivers one; raises `CannotDeliver`. Any other exception counts as a failure without another attempt.
        attempts: Attempts for each.
        first_wait_s: Before the second attempt; doubled after each.
        most: If more wait for delivery, the oldest are dropped.
    """

    def __init__(
        self,
        name: str,
        deliver: Callable[[T], None],
        *,
        attempts: int = 6,
        first_wait_s: float = FIRST_WAIT_S,
        most: int = MOST_WAITING,
    ) -> None:
        self.name = name
        self.lost = 0
        self._deliver = deliver
        self._attempts = attempts
        self._first_wait_s = first_wait_s
        self._most = most
        self._waiting: deque[T] = deque()
        self._news = threading.Condition()
        self._ended = False
        self._busy = False
        self._complained = False
        self._thread = threading.Thread(target=self._run, name="stepscope-outbox", daemon=True)
        self._thread.start()

    def put(self, item: T) -> None:
        """Queue one; never waits longer than for a lock that is held for microseconds."""
        with self._news:
            if len(self._waiting) >= self._most:
                self._waiting.popleft()
                self.lost += 1
            self._waiting.append(item)
            self._news.notify()

    def flush(self, timeout_s: float) -> bool:
        """Wait until nothing waits for delivery; return whether that came about."""
        with self._news:
            return self._news.wait_for(lambda: not self._waiting and not self._busy, timeout_s)

    def close(self, timeout_s: float = 2.0) -> None:
        """Deliver what waits, for some time, then end."""
        self.flush(timeout_s)
        with self._news:
            self._ended = True
            self._news.notify_all()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._waiting or self._ended)
                if self._ended:
                    return
                item = self._waiting.popleft()
                self._busy = True
            done = self._attempt_all(item)
            with self._news:
                self._busy = False
                self.lost += not done
                self._news.notify_all()

    def _attempt_all(self, item: T) -> bool:
        wait_s = self._first_wait_s
        for attempt in range(1, self._attempts + 1):
            try:
                self._deliver(item)
            except CannotDeliver as error:
                self._complain(printable(str(error))[:300])
                if not error.again or attempt == self._attempts:
                    return False
            except Exception as error:  # whatever it is, the next one may be delivered
                self._complain(printable(f"{type(error).__name__}: {error}")[:300])
                return False
            else:
                if self._complained:
                    self._complained = False
                    log.warning("%s: works again; %d lost so far", self.name, self.lost)
                return True
            with self._news:
                if self._news.wait_for(lambda: self._ended, wait_s):
                    return False
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)
        return False

    def _complain(self, reason: str) -> None:
        if not self._complained:
            self._complained = True
            log.warning("%s: %s. The job goes on; further failures are not reported", self.name, reason)
