"""What torch's profiler (Kineto), once used, means for forked copies of the process.

A copy has Kineto's memory, but not its thread. Two things follow. What recorded at the fork would go on recording, into
memory that nobody reads. And where the copy ends, a destructor of Kineto's waits for that thread, for ever: so copies
end without the destructors of compiled code, after everything of Python's (exit handlers, output) is done.
"""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache
from typing import Any

_exporting = threading.local()


@cache
def guard_exits() -> None:
    """Kineto is used from now on: copies of this process are to end well.

    Where the C library cannot tell an exit handler the exit status (it is not glibc), copies end as they would.
    """
    libc: Any = ctypes.CDLL(None)
    if not hasattr(libc, "on_exit") or not hasattr(libc, "__cxa_atexit"):
        return
    flush = getattr(libc, "__cxa_atexit")  # as text: in a class, Python would change this name

    def skip_destructors() -> None:
        libc.on_exit(libc._exit, None)  # called with the exit status, after all that is registered later
        flush(libc.fflush, None, None)

    os.register_at_fork(after_in_child=skip_destructors)


def stop_recording(*, all_threads: bool) -> None:
    """In a copy: no more events, at no cost that grows with those there are, and nothing that touches a device."""
    from torch.autograd import _enable_record_function

    _enable_record_function(False)  # of this thread, which is the only one now
    if all_threads and not is_export():
        import torch

        if not torch.cuda.is_initialized():
            mute()


def mute() -> None:
    """No more events of what records now, which is not ended thereby."""
    import torch

    toggle = getattr(torch._C._autograd, "_toggle_collection_dynamic", None)
    kinds = torch._C._profiler.ProfilerActivity
    if toggle is not None:  # all kinds at once: of fewer, it warns
        toggle(False, {kinds.CPU, kinds.CUDA, kinds.XPU})


def export_begins() -> None:
    """The next fork of this thread only writes a trace; locks of the framework are not to be touched in it."""
    _exporting.now = True


def export_over() -> None:
    """So much for that."""
    _exporting.now = False


def is_export() -> bool:
    """Whether this thread forks, or was forked, to write a trace."""
    return getattr(_exporting, "now", False)
