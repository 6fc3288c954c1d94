"""Windows of operators, recorded by torch's profiler (Kineto).

What a window costs was measured with torch 2.13 on a CPU. Recording an event costs about 0.5 us. Stopping costs 5.5 us
an event with input shapes and 1.6 us without, on the training thread: Kineto makes the texts of its trace there and
then, and no option avoids it (leaving out concrete inputs, external correlation, or the links from forward to backward
saves under 5 %). `trace_only` avoids the Python objects that torch would make beside these, another 0.5 to 5 us. What
is left, writing, is done elsewhere: see `export.py`.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from stepscope.record.backend import WindowLost
from stepscope.record.options import Options
from stepscope.record.patches import Patches
from stepscope.record.torch.export import export
from stepscope.record.torch.kineto import KinetoSession, give_up_bound, make_room
from stepscope.record.torch.other_profilers import OtherProfilers
from stepscope.record.torch.scopes import Scopes
from stepscope.recording_format.layout import KINETO

log = logging.getLogger("stepscope")


class TorchWindows:
    """Records operators with torch's own profiler. A window may be ended by another thread than began it.

    Args:
        options: What to record of them.
        patches: Puts in place what watches for other profilers.
        step: The number of the last step that ended.
    """

    kind = KINETO

    def __init__(self, options: Options, patches: Patches, step: Callable[[], int]) -> None:
        self._options = options
        self._step = step
        self._other_profilers = OtherProfilers(patches, self._give_way)
        self._patches = patches
        self._scopes = Scopes()
        self._lock = threading.RLock()
        self._session: KinetoSession | None = None
        self._kept: Any = None
        self._lost = ""
        self._said: set[str] = set()
        self.cut: tuple[int, int] | None = None
        """Where the last window had to end before its end: the last step that had ended, and the time, of
        `time.perf_counter_ns`."""

    def attach(self) -> None:
        """Begin to watch for other profilers, and for what is open where a window ends."""
        self._other_profilers.attach()
        self._scopes.attach(self._patches)

    def begin(self, directory: Path) -> None:  # noqa: ARG002 - the Ascend kind needs it
        """Begin to record.

        Raises:
            RuntimeError: If another profiler is active, or this process is a copy that cannot record.
        """
        with self._lock:
            if not self._other_profilers.begun:
                with self._other_profilers:
                    make_room()
            if self._other_profilers.active:
                raise RuntimeError("another torch.profiler is active in this process, and there can be one at a time")
            self._kept, self._lost, self.cut = None, "", None
            with self._other_profilers:
                session = KinetoSession(self._options)
                session.start()
            self._session = session
            self._scopes.watch()

    def end(self, directory: Path, counted: Callable[[int], None]) -> Callable[[], list[str]] | None:
        """Stop recording. What the window recorded before it had to give way counts.

        Args:
            directory: The window's.
            counted: Takes the number of its events, once they are written.

        Raises:
            WindowLost: If that is lost.
        """
        with self._lock:
            results, self._kept = self._stop() or self._kept, None
            lost, self._lost = self._lost, ""
        if lost:
            raise WindowLost(lost)
        return None if results is None else functools.partial(export, results, directory, counted=counted)

    def in_child(self) -> None:
        """In a forked child the profiler would go on recording, into memory that nobody reads."""
        self._lock = threading.RLock()
        session, self._session = self._session, None
        if session is not None:
            session.inherit()

    def _stop(self) -> Any:
        """Stop, and what was recorded."""
        session, self._session = self._session, None
        if session is None:
            return None
        self._scopes.end()
        if not session.can_end_here:
            self._lost = ("with profile_memory, or before torch 2.6, only the thread that began to record operators "
                          "can end that")  # fmt: skip
            return None
        with self._other_profilers:
            return session.end()

    def _give_way(self) -> None:
        """Somebody else's profiler begins: end what is recorded here, and keep it for `end`."""
        with self._lock:
            if self._session is None:
                self._make_room()
                return
            self.cut = self._step(), perf_counter_ns()
            self._kept = self._stop()
            if self._lost:
                self._lost = f"another torch.profiler took over, and {self._lost}"
            give_up_bound()

    def _make_room(self) -> None:
        try:
            with self._other_profilers:
                make_room()
        except RuntimeError as error:
            self._warn(str(error))
            give_up_bound()

    def _warn(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            log.warning("Profiler: %s", text)
