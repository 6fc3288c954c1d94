"""Forked children of a process in which torch's profiler (Kineto) has been used.

A child has Kineto's memory, but not its thread. A recording that was active at the fork would continue in the child,
into memory that nobody reads. And when the child exits, a destructor of Kineto waits for that thread forever: so
children exit without the destructors of compiled code, after Python's exit handlers and output.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from typing import Any

exporting = threading.local()
"""`now` is True while this thread forks, or was forked, only to write a trace: it must not touch locks of the
framework."""


_GUARDED = "_stepscope_guards_exits"
"""Set in `sys` once it is done, since this module may be loaded more than once in a process."""


def guard_exits() -> None:
    """Make forked children of this process exit cleanly, once Kineto is used: also after the recorder has left it.

    Without glibc, whose exit handlers get the exit status, children exit as usual.
    """
    if getattr(sys, _GUARDED, False):
        return
    setattr(sys, _GUARDED, True)
    libc: Any = ctypes.CDLL(None)
    if not hasattr(libc, "on_exit") or not hasattr(libc, "__cxa_atexit"):
        return
    flush = getattr(libc, "__cxa_atexit")  # as text: in a class, Python would change this name

    def skip_destructors() -> None:
        libc.on_exit(libc._exit, None)  # called with the exit status, after all that is registered later
        flush(libc.fflush, None, None)

    os.register_at_fork(after_in_child=skip_destructors)


def stop_recording(*, all_threads: bool) -> None:
    """In a forked child: stop recording events, in constant time and without touching a device."""
    from torch.autograd import _enable_record_function

    _enable_record_function(False)  # for this thread, now the only one
    if all_threads and not getattr(exporting, "now", False):
        import torch

        if not torch.cuda.is_initialized():
            mute()


def mute() -> None:
    """Stop the events of the active recording without ending it."""
    import torch

    toggle = getattr(torch._C._autograd, "_toggle_collection_dynamic", None)
    kinds = torch._C._profiler.ProfilerActivity
    if toggle is not None:  # all kinds at once: it warns about fewer
        toggle(False, {kinds.CPU, kinds.CUDA, kinds.XPU})
