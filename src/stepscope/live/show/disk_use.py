"""How large the records on this host are, measured beside the event loop."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence

MEASURED_EVERY_S = 60.0
"""As often as workers look themselves."""
MOST_FILES = 200_000
"""A directory with more files is measured no further, and its size is unknown."""


class DiskUse:
    """The size of what is below the base directory of some jobs, if it is on this host."""

    def __init__(self) -> None:
        self._size: int | None = None
        self._measured_at = float("-inf")
        self._thread: threading.Thread | None = None

    def of(self, directories: Sequence[str]) -> int | None:
        """Size in bytes as last measured; None if not measured yet or elsewhere.

        Args:
            directories: Of jobs; their parents are measured, in a thread, at most once a minute.
        """
        idle = self._thread is None or not self._thread.is_alive()
        if directories and idle and time.monotonic() - self._measured_at > MEASURED_EVERY_S:
            self._measured_at = time.monotonic()
            bases = sorted({os.path.dirname(directory) for directory in directories})  # noqa: PTH120 - of texts
            self._thread = threading.Thread(target=self._measure, args=(bases,), name="stepscope-disk-use", daemon=True)
            self._thread.start()
        return self._size

    def _measure(self, bases: list[str]) -> None:
        sizes = [size_below(base) for base in bases]
        known = [size for size in sizes if size is not None]
        self._size = sum(known) if known else None


def size_below(base: str) -> int | None:
    """Size of all files below a directory in bytes; None if it cannot be read, or has too many files."""
    size = count = 0
    if not os.path.isdir(base):  # noqa: PTH112 - of texts
        return None
    for directory, _, names in os.walk(base):
        for name in names:
            count += 1
            if count > MOST_FILES:
                return None
            try:
                size += os.lstat(os.path.join(directory, name)).st_size  # noqa: PTH118 - many files
            except OSError:
                continue  # aged meanwhile
    return size
