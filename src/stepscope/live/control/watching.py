"""The detector at work: on a thread of its own, fed with what ranks say, so that switching never waits for it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from stepscope.live.messages import Digest, Hello, Pulse
from stepscope.live.verdicts import Verdict

log = logging.getLogger("stepscope")

LOOK_EVERY_S = 1.0
_MOST_WAITING = 2_000_000
"""What waits for a detector that is too slow; the oldest is then dropped."""


class Detector(Protocol):
    """What finds slow ranks (`live.detect.Detector`): without clock, input or output."""

    @property
    def wants_communication(self) -> bool:
        """Whether it lacks evidence that the communication switch would give."""

    def hello(self, hello: Hello) -> None:
        """A rank takes part."""

    def left(self, rank: int, now_ns: int) -> None:
        """A rank takes no part any more."""

    def digest(self, digest: Digest) -> None:
        """A rank has ended a step."""

    def pulse(self, pulse: Pulse, now_ns: int) -> None:
        """A rank is alive."""

    def look(self, now_ns: int) -> list[Verdict]:
        """Verdicts that are new or have changed."""


class Watching:
    """Feeds a detector and looks once a second.

    Args:
        found: Gets each verdict, in the event loop.
    """

    def __init__(self, detector: Detector, found: Callable[[Verdict], None]) -> None:
        self.wants_communication = False
        self.lag_ns = 0
        """How far the last look was behind when it ended."""
        self._detector, self._found = detector, found
        self._waiting: list[Callable[[], None]] = []
        self._thread = ThreadPoolExecutor(1, "stepscope-detector")

    def hello(self, hello: Hello) -> None:
        """See `Detector`."""
        self._put(lambda: self._detector.hello(hello))

    def left(self, rank: int, now_ns: int) -> None:
        """See `Detector`."""
        self._put(lambda: self._detector.left(rank, now_ns))

    def digest(self, digest: Digest) -> None:
        """See `Detector`."""
        self._put(lambda: self._detector.digest(digest))

    def pulse(self, pulse: Pulse, now_ns: int) -> None:
        """See `Detector`."""
        self._put(lambda: self._detector.pulse(pulse, now_ns))

    async def run(self) -> None:
        """Look until this is cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                began_s = time.monotonic()
                waiting, self._waiting = self._waiting, []
                for verdict in await loop.run_in_executor(self._thread, self._look, waiting):
                    self._report(verdict)
                took_s = time.monotonic() - began_s
                await asyncio.sleep(max(LOOK_EVERY_S - took_s, 0.05))
        finally:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def _report(self, verdict: Verdict) -> None:
        try:
            self._found(verdict)
        except Exception:  # one verdict must not cost the job all later ones
            log.exception("a verdict could not be passed on")

    def _look(self, waiting: list[Callable[[], None]]) -> list[Verdict]:
        began_ns = time.time_ns()
        for feed in waiting:
            try:
                feed()
            except Exception:
                log.exception("the detector failed on a message")
        try:
            found = self._detector.look(time.time_ns())
            self.wants_communication = self._detector.wants_communication
        except Exception:
            log.exception("the detector failed")
            return []
        self.lag_ns = time.time_ns() - began_ns
        return found

    def _put(self, feed: Callable[[], None]) -> None:
        self._waiting.append(feed)
        if len(self._waiting) > _MOST_WAITING:
            half = len(self._waiting) // 2
            del self._waiting[:half]
            log.error("the detector is too slow for this job; %d messages were left out", half)
