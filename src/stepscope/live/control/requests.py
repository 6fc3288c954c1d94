"""Questions to ranks whose answers come later: captures and checks."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress
from dataclasses import dataclass, field

from stepscope.live.messages import Captured, Checked

Answer = Captured | Checked

MOST_KEPT = 64
"""The last requests whose answers are kept."""


@dataclass
class Request:
    """One request: which ranks were asked, and what they have answered."""

    ranks: list[int]
    answers: dict[int, Answer] = field(default_factory=dict)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def pending(self) -> list[int]:
        """Ranks that have not answered."""
        return [rank for rank in self.ranks if rank not in self.answers]


class Requests:
    """The last requests, by id."""

    def __init__(self) -> None:
        self._kept: dict[str, Request] = {}

    def new(self, ranks: list[int]) -> str:
        """Begin a request; returns its id."""
        name = uuid.uuid4().hex[:12]
        self._kept[name] = Request(sorted(ranks))
        while len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return name

    def take(self, name: str, answer: Answer) -> None:
        """A rank has answered."""
        request = self._kept.get(name)
        if request is not None and answer.rank in request.ranks:
            request.answers[answer.rank] = answer
            if not request.pending:
                request.done.set()

    def gone(self, rank: int, reason: str) -> None:
        """A rank will answer nothing any more."""
        for name, request in self._kept.items():
            if rank in request.pending:
                self.take(name, Captured(rank, name, error=reason))

    async def answers(self, name: str, timeout_s: float) -> Request:
        """Wait until all ranks have answered, or the time is over."""
        request = self._kept[name]
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(request.done.wait(), timeout_s)
        return request
