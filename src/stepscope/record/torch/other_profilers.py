"""Other users of torch's profiler in this process: only one can be active, and others take precedence."""

from __future__ import annotations

import functools
import gc
import threading
from collections.abc import Callable
from typing import Any

from stepscope.record.patches import Patches

_BEGIN = ("_prepare_profiler", "_enable_profiler")
_END = "_disable_profiler"
OURS = "_is_of_stepscope"
"""Attribute of the torch profilers that recorders make: a fork or a thread may have left one behind."""


class OtherProfilers:
    """Detects whether another profiler is active.

    All front ends (`torch.profiler`, `torch.autograd.profiler`) call three functions of one module by name, so wrapping
    these three detects all of them at no other cost.

    Args:
        patches: Installs the wrappers.
        give_way: Called before another profiler is prepared or begins.
    """

    def __init__(self, patches: Patches, give_way: Callable[[], None]) -> None:
        self._patches = patches
        self._give_way = give_way
        self.begun = False
        """Whether another profiler was prepared or started since `attach`, and has not ended."""
        self._ours = 0
        """The thread in which the recorder itself calls these functions; 0 for none."""
        self._searched = False

    def attach(self) -> None:
        """Wrap them."""
        from torch.autograd import profiler

        for name in _BEGIN:
            if hasattr(profiler, name):
                self._patches.put(profiler, name, self._beginning(getattr(profiler, name)))
        self._patches.put(profiler, _END, self._ending(getattr(profiler, _END)))
        self._searched = False

    def search(self) -> None:
        """Find a profiler that had begun before `attach`, once, before a session of ours begins.

        One that only warms up cannot be recognised otherwise, and a second session would crash the process. Searching
        all objects takes some 50 ms for a million of them.
        """
        if not self._searched:
            self._searched = True
            self.begun = self.begun or _is_any_entered()

    @property
    def active(self) -> bool:
        """Whether another profiler is prepared or recording."""
        from torch import autograd

        return self.begun or (not self._is_ours() and bool(autograd._profiler_enabled()))

    def __enter__(self) -> None:
        self._ours = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self._ours = 0

    def _is_ours(self) -> bool:
        return self._ours == threading.get_ident()

    def _beginning(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not self._is_ours():
                self._give_way()
                self.begun = True
            try:
                return original(*args, **kwargs)
            except BaseException:
                self.begun = False
                raise

        return wrapper

    def _ending(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not self._is_ours():
                self.begun = False
            return original(*args, **kwargs)

        return wrapper


def _is_any_entered() -> bool:
    """Whether a profiler of torch in this process was started and has not ended, other than those of recorders."""
    from torch.autograd.profiler import profile

    there = (one for one in gc.get_objects() if type(one) is profile)
    return any(one.entered and one.kineto_results is None and not hasattr(one, OURS) for one in there)
