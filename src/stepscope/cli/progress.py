"""A progress bar that appears only when work takes longer than a moment."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from stepscope.present import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE_S = 1.0
"""Work shorter than this shows no bar."""


class ProgressBar:
    """Call it with bytes done, bytes in all and what is being read; it draws on standard error of a terminal."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._started = time.monotonic()
        self._off = quiet or not sys.stderr.isatty()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __call__(self, done: int, total: int, label: str) -> None:
        if self._off or total <= 0:
            return
        if self._bar is None:
            if time.monotonic() - self._started < PATIENCE_S:
                return
            self._start(total)
        assert self._bar is not None and self._task is not None
        self._bar.update(self._task, completed=done, total=total, description=printable(f"reading {label}"))

    def _start(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._bar.start()
        self._task = self._bar.add_task("reading", total=total)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
