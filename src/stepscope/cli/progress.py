"""A progress bar that appears only when work takes longer than a moment."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from stepscope.present import printable

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE_S = 1.0
"""Work shorter than this shows no bar."""

FIGURES = 1 + 16 + len("1000.0/1000.0 MB") + len("0:00:00") + 4
"""Cells of a line beside the name of what is read: spinner, bar, bytes, time left, and spaces between."""


class ProgressBar:
    """Draws how far reading has come, on standard error of a terminal; a context manager that ends it.

    A thread shows the bar, so that it appears even if a single input says nothing until it is read.
    """

    def __init__(self, *, quiet: bool = False, doing: str = "reading", finishing: str = "sorting") -> None:
        self._off = quiet or not sys.stderr.isatty()
        self._doing, self._finishing = doing, finishing
        self._bar: Progress | None = None
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()
        self._ended = False
        self._last = (0, 0, "")

    @property
    def watch(self) -> Callable[[int, int, str], None] | None:
        """Takes bytes done, bytes in all and what is being read; None if nobody would see it."""
        return None if self._off else self

    def __call__(self, done: int, total: int, label: str) -> None:
        if self._off or total <= 0:
            return
        with self._lock:
            self._last = (done, total, label)
            if self._bar is not None:
                self._draw(self._bar)
            elif self._timer is None:
                self._timer = threading.Timer(PATIENCE_S, self._start)
                self._timer.daemon = True
                self._timer.start()

    def _draw(self, bar: Progress) -> None:
        done, total, label = self._last
        doing = self._doing if done < total else self._finishing
        bar.update(bar.task_ids[0], completed=done, total=total, description=printable(f"{doing} {label}".strip()))

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
        from rich.table import Column

        console, line = Console(stderr=True), Column(no_wrap=True)
        name = Column(no_wrap=True, overflow="ellipsis", max_width=max(console.width - FIGURES, 8))
        text = TextColumn("{task.description}", markup=False, table_column=name)
        figures = (DownloadColumn(table_column=line.copy()), TimeRemainingColumn(table_column=line.copy()))
        columns = (SpinnerColumn(), text, BarColumn(bar_width=16), *figures)
        with self._lock:
            if self._ended:
                return
            self._bar = Progress(*columns, console=console, transient=True)
            self._bar.add_task(self._doing, total=None)
            self._draw(self._bar)
            self._bar.start()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._ended = True
            if self._bar is not None:
                self._bar.stop()
