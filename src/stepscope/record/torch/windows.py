"""Windows of operators, recorded by torch's profiler (Kineto).

Measured with torch 2.13 on a CPU: recording takes about 0.5 us per event. Stopping takes 5.5 us per event with input
shapes and 1.6 us without, on the training thread: Kineto formats its trace at that point, and no option avoids it
(omitting concrete inputs, external correlation or forward-backward links saves under 5 %). `trace_only` avoids the
Python objects that torch would also create, another 0.5 to 5 us. Writing is done elsewhere: see `export.py`.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from stepscope.record.backend import OperatorWindows, WindowLost, Written
from stepscope.record.options import Options
from stepscope.record.patches import Patches
from stepscope.record.torch.export import export
from stepscope.record.torch.kineto import KinetoSession, give_up_bound, make_room
from stepscope.record.torch.other_profilers import OtherProfilers
from stepscope.record.torch.scopes import Scopes
from stepscope.recording_format.layout import KINETO

log = logging.getLogger("stepscope")


class TorchWindows(OperatorWindows):
    """Records operators with torch's own profiler. A window may be ended by another thread than the one that began it.

    Args:
        options: What to record.
        patches: Installs the detection of other profilers.
        step: Returns the number of the last completed step.
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
        self._reported: set[str] = set()

    def attach(self) -> None:
        """Start watching for other profilers and for open ranges."""
        self._other_profilers.attach()
        self._scopes.attach(self._patches)

    def other_is_active(self) -> bool:
        """Whether another profiler of this process is prepared or recording, also if it began before `attach`."""
        self._other_profilers.search()
        return self._other_profilers.active

    def begin(self, directory: Path) -> None:  # noqa: ARG002 - the Ascend kind needs it
        with self._lock:
            self._other_profilers.search()
            if not self._other_profilers.begun:
                with self._other_profilers:
                    make_room()
            if self._other_profilers.active:
                raise RuntimeError("another torch.profiler is active in this process, and only one can be at a time")
            self._kept, self._lost, self.cut = None, "", None
            with self._other_profilers:
                session = KinetoSession(self._options)
                session.start()
            self._session = session
            self._scopes.watch()

    def end(self, directory: Path) -> Callable[[], Written] | None:
        """Stop recording. Data recorded before the window yielded to another profiler is kept."""
        with self._lock:
            results, self._kept = self._stop() or self._kept, None
            lost, self._lost = self._lost, ""
        if lost:
            raise WindowLost(lost)
        return None if results is None else functools.partial(export, results, directory)

    def in_child(self) -> None:
        """In a forked child: stop the profiler, which would continue recording into memory that nobody reads."""
        self._lock = threading.RLock()
        session, self._session = self._session, None
        if session is not None:
            session.inherit()

    def _stop(self) -> Any:
        """Stop recording and return the results."""
        session, self._session = self._session, None
        if session is None:
            return None
        self._scopes.end()
        if not session.can_end_here:
            self._lost = ("with profile_memory, or before torch 2.6, only the thread that started recording operators "
                          "can stop it")  # fmt: skip
            return None
        with self._other_profilers:
            return session.end()

    def _give_way(self) -> None:
        """Another profiler begins: end the current window early, and keep its data for `end`."""
        with self._lock:
            if self._session is None:
                try:
                    with self._other_profilers:
                        make_room()
                except RuntimeError as error:
                    if str(error) not in self._reported:
                        self._reported.add(str(error))
                        log.warning("Profiler: %s", error)
                    give_up_bound()
                return
            self.cut = self._step(), perf_counter_ns()
            self._kept = self._stop()
            if self._lost:
                self._lost = f"another torch.profiler took over, and {self._lost}"
            give_up_bound()
