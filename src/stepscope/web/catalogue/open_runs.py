"""Runs that are kept open: the ones used last, up to a number, each with the data of one stamp."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from stepscope.run import Run


class OpenRuns:
    """Open runs by id; any thread may ask.

    Args:
        most: How many are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, tuple[str, Run]] = OrderedDict()

    def get(self, identity: str, stamp: str, opened: Callable[[], Run]) -> Run:
        """The run of an id with the data of a stamp, opened if it is not; each is opened once, whoever asks for it."""
        with self._lock:
            known, run = self._runs.get(identity, ("", None))
            if run is None or known != stamp:
                run = opened()
                self._runs[identity] = (stamp, run)
            self._runs.move_to_end(identity)
            while len(self._runs) > self._most:
                self._runs.popitem(last=False)
        return run

    def has(self, identity: str, stamp: str) -> bool:
        """Whether the run of an id is open, with the data of a stamp."""
        found = self._runs.get(identity)
        return found is not None and found[0] == stamp

    def drop(self, identity: str) -> None:
        """Close the run of an id."""
        with self._lock:
            self._runs.pop(identity, None)

    def drop_stamp(self, stamp: str) -> None:
        """Close the runs with the data of a stamp."""
        with self._lock:
            for identity in [each for each, (known, _) in self._runs.items() if known == stamp]:
                del self._runs[identity]

    def clear(self) -> None:
        """Close all."""
        with self._lock:
            self._runs.clear()
