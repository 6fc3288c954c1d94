"""How far reading has come, reported a few times a second."""

from __future__ import annotations

import time
from collections.abc import Callable

INTERVAL_S = 0.1
"""Time between two reports; a bar is drawn no more often."""


def throttled(report: Callable[[int], None]) -> Callable[[int], None]:
    """A function that adds up its arguments and reports the sum now and then, but not the rest at the end."""
    held, last = 0, time.monotonic()

    def advance(count: int) -> None:
        nonlocal held, last
        held += count
        now = time.monotonic()
        if now - last >= INTERVAL_S:
            report(held)
            held, last = 0, now

    return advance
