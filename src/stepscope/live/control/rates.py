"""Bounds on what one peer may send."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass


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
