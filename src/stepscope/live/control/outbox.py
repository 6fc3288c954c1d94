"""What a proxy has to tell the manager, kept while the manager is away."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from stepscope.live.control.bounds import Bounds

BATCH_BYTES = 1024 * 1024
"""Lines that go into one message, so that a long queue holds nothing else up for long."""
_MOST_RESULTS = 1024


@dataclass
class Batch:
    """What goes out next, in this order: ends, hellos, answers, pulses, results and digests."""

    left: list[tuple[int, int]] = field(default_factory=list)
    lines: list[tuple[int, bytes]] = field(default_factory=list)
    results: list[tuple[int, bytes]] = field(default_factory=list)
    digests: list[tuple[int, bytes]] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    lost: int = 0


class Outbox:
    """Of hellos, answers to switches and pulses only the last of each rank counts. Digests and results wait, digests
    up to a bound beyond which the oldest are dropped."""

    def __init__(self, bounds: Bounds) -> None:
        self._most_bytes = bounds.waiting_bytes
        self._left: dict[tuple[int, int], None] = {}
        self._hellos: dict[int, bytes] = {}
        self._applied: dict[int, bytes] = {}
        self._pulses: dict[int, bytes] = {}
        self._results: deque[tuple[int, bytes]] = deque(maxlen=_MOST_RESULTS)
        self._digests: deque[tuple[int, bytes]] = deque()
        self._answers: deque[Any] = deque(maxlen=_MOST_RESULTS)
        self._bytes = 0
        self._unreported = 0
        self._some = asyncio.Event()
        self.lost = 0

    def __len__(self) -> int:
        kept = (self._left, self._hellos, self._applied, self._pulses, self._results, self._digests, self._answers)
        return sum(len(each) for each in kept)

    def hello(self, rank: int, line: bytes) -> None:
        """A worker has registered, or is registered still; what its rank said before holds no more."""
        self._hellos[rank] = line
        self._applied.pop(rank, None)
        self._some.set()

    def left(self, rank: int, started_at_ns: int) -> None:
        """A worker's process has ended."""
        self._left[rank, started_at_ns] = None
        self._some.set()

    def forget(self, rank: int) -> None:
        """A rank has no worker any more."""
        for kept in (self._hellos, self._applied, self._pulses):
            kept.pop(rank, None)

    def applied(self, rank: int, line: bytes) -> None:
        """An answer to a switch."""
        self._applied[rank] = line
        self._some.set()

    def pulse(self, rank: int, line: bytes) -> None:
        """A pulse."""
        self._pulses[rank] = line
        self._some.set()

    def result(self, rank: int, line: bytes) -> None:
        """The result of a capture or check."""
        self._results.append((rank, line))
        self._some.set()

    def answer(self, message: Any) -> None:
        """An answer of the proxy itself, as a message of the protocol."""
        self._answers.append(message)
        self._some.set()

    @property
    def waiting_answers(self) -> int:
        """Answers of the proxy itself that are not sent yet."""
        return len(self._answers)

    def digests(self, rank: int, line: bytes) -> None:
        """Steps that have ended."""
        self._digests.append((rank, line))
        self._bytes += len(line)
        while self._bytes > self._most_bytes and len(self._digests) > 1:
            self._bytes -= len(self._digests.popleft()[1])
            self.lost += 1
            self._unreported += 1
        self._some.set()

    async def take(self) -> Batch:
        """Wait for something, and take what goes into one message."""
        await self._some.wait()
        batch = Batch(list(self._left), lost=self._unreported)
        batch.lines = [*self._hellos.items(), *self._applied.items(), *self._pulses.items()]
        batch.results, batch.answers = list(self._results), list(self._answers)
        for kept in (self._left, self._hellos, self._applied, self._pulses, self._results, self._answers):
            kept.clear()
        self._unreported = size = 0
        while self._digests and (not size or size + len(self._digests[0][1]) <= BATCH_BYTES):
            batch.digests.append(self._digests.popleft())
            size += len(batch.digests[-1][1])
        self._bytes -= size
        if not self._digests:
            self._some.clear()
        return batch

    def put_back(self, batch: Batch) -> None:
        """It could not be sent. Hellos, answers and pulses are not kept, since all are told anew after a break."""
        self._left.update(dict.fromkeys(batch.left))
        self._results.extendleft(reversed(batch.results))
        self._answers.extendleft(reversed(batch.answers))
        self._digests.extendleft(reversed(batch.digests))
        self._bytes += sum(len(line) for _, line in batch.digests)
        self._unreported += batch.lost
        self._some.set()
