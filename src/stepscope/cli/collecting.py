"""The progress bar of `stepscope collect`: bytes, files and hosts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from stepscope.cli.progress import ProgressBar

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepscope.cluster.collecting import Progress

INTERVAL_S = 0.1


class CollectBar(ProgressBar):
    """Draws how far collecting has come, on standard error of a terminal; a context manager that ends it."""

    def __init__(self) -> None:
        super().__init__(doing="copying", finishing="copying")
        self._drawn = 0.0

    @property
    def watching(self) -> Callable[[Progress], None] | None:
        """Takes how far it has come; None if nobody would see it."""
        return None if self._off else self.collected

    def collected(self, now: Progress) -> None:
        """Draw, a few times a second."""
        if time.monotonic() - self._drawn >= INTERVAL_S:
            self._drawn = time.monotonic()
            self(now.bytes, now.of_bytes, f"{now.hosts}/{now.of_hosts} hosts, {now.files}/{now.of_files} files")
