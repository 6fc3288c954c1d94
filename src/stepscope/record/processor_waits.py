"""How long a thread was ready to run while the processors ran others, as Linux counts it."""

from __future__ import annotations

import os
from contextlib import suppress
from threading import get_ident

_FILE = "/proc/thread-self/schedstat"

Reading = tuple[int, int]
"""A thread (`get_ident`) and its waits since it began, ns."""


class ProcessorWaits:
    """Reads the waits of the thread that asks. The file stays open, since opening it costs more than reading it."""

    def __init__(self) -> None:
        self._file = -1
        self._thread = 0

    def read(self) -> Reading | None:
        """The waits of this thread so far; None if the system does not count them."""
        thread = get_ident()
        if thread != self._thread:
            self._open(thread)
        if self._file < 0:
            return None
        try:
            return thread, int(os.pread(self._file, 64, 0).split()[1])
        except (OSError, IndexError, ValueError):
            return None

    def close(self) -> None:
        """Close the file; the next reading opens it again. Also to be called in a forked child, whose threads are
        others."""
        if self._file >= 0:
            with suppress(OSError):
                os.close(self._file)
        self._file, self._thread = -1, 0

    def _open(self, thread: int) -> None:
        self.close()
        self._thread = thread
        with suppress(OSError):
            self._file = os.open(_FILE, os.O_RDONLY | os.O_CLOEXEC)


def between(first: Reading | None, last: Reading | None) -> int | None:
    """What a thread waited between two readings, ns; None if either is unknown or of another thread."""
    if first is None or last is None or first[0] != last[0]:
        return None
    return max(last[1] - first[1], 0)
