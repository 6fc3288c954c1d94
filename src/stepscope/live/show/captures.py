"""Profiles that were asked for: who makes them, and what they left."""

from __future__ import annotations

import time
from typing import Any

from stepscope.live.messages import Captured
from stepscope.live.show.sentences import short_name
from stepscope.live.show.status import CaptureStatus

MOST = 20
"""The last captures that are kept."""
MOST_FILES = 64
"""Files of a capture that are listed."""


class Captures:
    """The last captures, by id."""

    def __init__(self) -> None:
        self._known: dict[str, CaptureStatus] = {}

    def begun(self, capture: str, ranks: list[int]) -> None:
        """A capture was sent to some ranks."""
        self._put(CaptureStatus(short_name(capture), sorted(ranks), "running", time.time_ns()))

    def take(self, event: Any) -> None:
        """A rank has finished its part; other events are passed over."""
        if not isinstance(event, Captured):
            return
        name = short_name(event.capture)
        before = self._known.get(name)
        files = [short_name(file, 400) for file in event.files]
        self._put(
            CaptureStatus(
                name,
                sorted({*(before.ranks if before else ()), event.rank}),
                "failed" if event.error else "ended",
                before.at_ns if before else time.time_ns(),
                [*(before.files if before else ()), *files][:MOST_FILES],
                f"rank {event.rank}: {short_name(event.error, 200)}" if event.error else before.error if before else "",
            )
        )

    def listed(self) -> list[CaptureStatus]:
        """The latest first."""
        return list(reversed(self._known.values()))

    def _put(self, capture: CaptureStatus) -> None:
        self._known[capture.capture] = capture
        while len(self._known) > MOST:
            del self._known[next(iter(self._known))]
