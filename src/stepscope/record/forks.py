"""What to do in a forked child of this process: registered with Python once, or until it is taken back.

Python never forgets what `os.register_at_fork` was given. A recorder that is put into a running process for a while
must leave nothing there, so `borrow` wraps `os.fork` instead, before the rest of the recorder is imported.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from stepscope.record.patches import Patches

_callbacks: list[Callable[[], None]] = []
_patches: list[Patches] = []
_registered = False


def in_child(callback: Callable[[], None]) -> Callable[[], None]:
    """Call `callback` in every forked child from now on; usable as a decorator."""
    global _registered  # noqa: PLW0603 - one registration serves all callbacks
    _callbacks.append(callback)
    if not _registered and not _patches:
        _registered = True
        os.register_at_fork(after_in_child=_run)
    return callback


def borrow() -> None:
    """Call the callbacks through a wrapper of `os.fork`, until `give_back`. Forks by compiled code are not noticed."""
    if _registered or _patches:
        return
    patches = Patches()
    _patches.append(patches)
    for name in ("fork", "forkpty"):
        if hasattr(os, name):
            patches.put(os, name, _wrapped(getattr(os, name)))


def give_back() -> None:
    """Restore `os.fork`."""
    while _patches:
        _patches.pop().undo()


def _wrapped(original: Callable[[], Any]) -> Callable[[], Any]:
    @functools.wraps(original)
    def fork() -> Any:
        result = original()
        if (result[0] if isinstance(result, tuple) else result) == 0:
            _run()
        return result

    return fork


def _run() -> None:
    for callback in list(_callbacks):
        callback()
