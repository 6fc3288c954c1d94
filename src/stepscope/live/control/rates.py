"""Bounds on what one peer may send."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from stepscope.live.control.bounds import Bounds

_MOST_TEXTS = 100


@dataclass
class Bucket:
    """A rate with bursts: `a_second` units flow in, up to `most`.

    Args:
        now_s: A clock that never goes back, in seconds.
    """

    a_second: float
    most: float
    now_s: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._level, self._at_s = self.most, self.now_s()

    def take(self, units: float = 1) -> bool:
        """Take some units if they are there."""
        self._fill()
        if self._level < units:
            return False
        self._level -= units
        return True

    async def wait(self, units: float = 1) -> None:
        """Take some units, on credit if they are not there, and wait until the debt is paid: the peer is slowed down
        to the rate, by what its network connection holds back."""
        self._fill()
        self._level -= units
        if self._level < 0:
            await asyncio.sleep(-self._level / self.a_second)

    def _fill(self) -> None:
        now_s = self.now_s()
        self._level = min(self.most, self._level + (now_s - self._at_s) * self.a_second)
        self._at_s = now_s


class Allowance:
    """How many lines, and how many bytes in them, a peer may send.

    Args:
        workers: It speaks for as many workers at their highest rate.
    """

    def __init__(self, bounds: Bounds, workers: int = 1) -> None:
        self._lines = bucket(bounds.lines_a_second * workers, bounds)
        self._bytes = bucket(bounds.bytes_a_second * workers, bounds)

    async def wait(self, lines: int, size: int) -> None:
        """Count what it has sent, and wait if that is more than it may."""
        await self._lines.wait(lines)
        await self._bytes.wait(size)


def bucket(a_second: float, bounds: Bounds) -> Bucket:
    """A rate with the bursts that are allowed to all peers."""
    return Bucket(a_second, a_second * bounds.burst)


@dataclass
class Once:
    """Texts that are worth a line in the log: each once in a while, however often its cause repeats."""

    every_s: float = 60.0
    now_s: Callable[[], float] = time.monotonic
    _told: dict[str, float] = field(default_factory=dict)

    def is_news(self, text: str) -> bool:
        """Whether to log it now."""
        now_s = self.now_s()
        if now_s - self._told.get(text, -math.inf) < self.every_s:
            return False
        self._told[text] = now_s
        if len(self._told) > _MOST_TEXTS:
            del self._told[next(iter(self._told))]
        return True
