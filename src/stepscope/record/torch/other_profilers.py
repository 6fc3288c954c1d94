"""Other users of torch's profiler in this process: only one can be active, and others take precedence."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from stepscope.record.patches import Patches

_BEGIN = ("_prepare_profiler", "_enable_profiler")
_END = "_disable_profiler"


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

    def attach(self) -> None:
        """Wrap them."""
        from torch.autograd import profiler

        for name in _BEGIN:
            if hasattr(profiler, name):
                self._patches.put(profiler, name, self._beginning(getattr(profiler, name)))
        self._patches.put(profiler, _END, self._ending(getattr(profiler, _END)))

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
