"""What to do when this process ends, also in children of multiprocessing; and taking it back."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable


def at_end(callback: Callable[[], None]) -> None:
    """Call `callback` when the process ends, also in children of multiprocessing, which skip atexit."""
    atexit.register(callback)
    util = sys.modules.get("multiprocessing.util")
    process = sys.modules.get("multiprocessing.process")
    if util is not None and process is not None and process.parent_process() is not None:
        util.Finalize(None, callback, exitpriority=100)


def not_at_end(callback: Callable[[], None]) -> None:
    """Call it no more."""
    atexit.unregister(callback)
    util = sys.modules.get("multiprocessing.util")
    for waiting in list(getattr(util, "_finalizer_registry", {}).values()):
        if waiting._callback is callback:
            waiting.cancel()
