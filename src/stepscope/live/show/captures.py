"""Profiles that were asked for: who makes them, and what they left."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from stepscope.live.control.status import RankChange
from stepscope.live.messages import Captured
from stepscope.live.show.sentences import short_name
from stepscope.live.show.status import CaptureStatus

MOST = 20
"""The last captures that are kept."""
MOST_FILES = 64
"""Files of a capture that are listed."""
_GONE = {"left": "it has left", "lost": "it was lost", "restarted": "its process was restarted"}
"""Why a rank that was asked leaves no profile, by what has become of it."""


@dataclass
class _Asked:
    """One capture.

    Args:
        ranks: Those that were asked, or have answered.
        files: What they have left.
        errors: Why ranks have left nothing; empty for those that have.
    """

    at_ns: int
    ranks: set[int] = field(default_factory=set)
    files: list[str] = field(default_factory=list)
    errors: dict[int, str] = field(default_factory=dict)

    def status(self, name: str) -> CaptureStatus:
        problems = [f"rank {rank}: {error}" for rank, error in self.errors.items() if error]
        is_running = not self.errors.keys() >= self.ranks
        state = "running" if is_running else "failed" if problems else "ended"
        error = problems[-1] if problems else ""
        return CaptureStatus(name, sorted(self.ranks), state, self.at_ns, self.files[:MOST_FILES], error)


class Captures:
    """The last captures, by id."""

    def __init__(self) -> None:
        self._known: dict[str, _Asked] = {}

    def begun(self, capture: str, ranks: list[int]) -> None:
        """A capture was sent to some ranks."""
        self._of(short_name(capture)).ranks.update(ranks)

    def take(self, event: Any) -> None:
        """A rank has finished its part, or will not any more; other events are passed over."""
        if isinstance(event, RankChange):
            self._gone(event)
        elif isinstance(event, Captured):
            asked = self._of(short_name(event.capture))
            asked.ranks.add(event.rank)
            asked.files += [short_name(file, 400) for file in event.files[: MOST_FILES - len(asked.files)]]
            asked.errors[event.rank] = short_name(event.error, 200)

    def listed(self) -> list[CaptureStatus]:
        """The latest first."""
        return [asked.status(name) for name, asked in reversed(self._known.items())]

    def _gone(self, change: RankChange) -> None:
        reason = _GONE.get(change.change)
        if reason is not None:
            for asked in self._known.values():
                if change.rank in asked.ranks:
                    asked.errors.setdefault(change.rank, reason)

    def _of(self, name: str) -> _Asked:
        asked = self._known.setdefault(name, _Asked(time.time_ns()))
        while len(self._known) > MOST:
            del self._known[next(iter(self._known))]
        return asked
