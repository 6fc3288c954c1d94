"""The nodes of a job, as the manager sees them: one link each, over which state and commands go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

from stepscope.live.control.bounds import Bounds
from stepscope.live.control.rates import Allowance

log = logging.getLogger("stepscope")

_MOST_UNSENT = 4096
"""Messages that wait for a node that does not read; its link is then closed, and it connects again."""
LINES_FACTOR = 32
"""A node may send as many lines as this many workers at their highest rate."""


class Node:
    """The link of one proxy."""

    def __init__(self, name: str, host: str, bounds: Bounds) -> None:
        self.name, self.host = name, host
        self.state: tuple[str, int, list[str]] = "", 0, []
        """Job, revision and switches that it knew when it registered."""
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self.allowance = Allowance(bounds, LINES_FACTOR)

    def send(self, message: Any) -> None:
        """Send a message of the protocol."""
        if self._queue.qsize() >= _MOST_UNSENT:
            log.warning("node %s does not read what it is sent; its link is closed", self.name)
            self.close()
        else:
            self._queue.put_nowait(message)

    def close(self) -> None:
        """End the link."""
        self._queue.put_nowait(None)

    async def outgoing(self) -> AsyncIterator[Any]:
        """What is sent, until the link ends."""
        while (message := await self._queue.get()) is not None:
            yield message
