"""Ranges of `record_function` that are open when a window ends.

Torch's profiler frees the events of a window with it, and a range writes its end there if any profiler is active by
then. A range still open when one window ends and the next begins (e.g. the optimizer's own, in which steps end) would
therefore write to freed memory. So open ranges are tracked here and ended with the window; when the script ends them
again, that has no effect.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

from stepscope.record.patches import Patches


class Scopes:
    """The ranges opened since `watch` by the thread that called it, and still open."""

    def __init__(self) -> None:
        self._open: dict[int, Any] = {}
        self._thread = 0

    def attach(self, patches: Patches) -> None:
        """Wrap entering and leaving of ranges."""
        from torch.autograd.profiler import record_function

        enter, leave = vars(record_function)["__enter__"], vars(record_function)["__exit__"]

        @functools.wraps(enter)
        def __enter__(scope: Any) -> Any:  # noqa: N807
            result = enter(scope)
            if self._thread and self._thread == threading.get_ident():
                self._open[id(scope)] = scope
            return result

        @functools.wraps(leave)
        def __exit__(scope: Any, *error: Any) -> Any:  # noqa: N807
            if self._open:
                self._open.pop(id(scope), None)
            return leave(scope, *error)

        patches.put(record_function, "__enter__", __enter__)
        patches.put(record_function, "__exit__", __exit__)

    def watch(self) -> None:
        """A window begins."""
        self._open.clear()
        self._thread = threading.get_ident()

    def end(self) -> None:
        """The window ends: end the open ranges, innermost first."""
        self._thread = 0
        while self._open:
            scope = self._open.popitem()[1]
            scope.__exit__(None, None, None)
