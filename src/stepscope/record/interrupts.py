"""Ctrl-C inside a function that the interpreter calls, such as one of `gc.callbacks`.

A signal handler runs before the next Python instruction. After a collection that may be inside the callback, and an
exception raised there is only printed: training would continue despite Ctrl-C.
"""

from __future__ import annotations

import signal
import sys
import weakref
from _thread import interrupt_main
from collections.abc import Callable
from functools import partial
from types import CodeType
from typing import Any


class Interrupts:
    """Raises Ctrl-C again in the script if it was lost in `function`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._code: CodeType = function.__code__
        self._before: Callable[[Any], Any] | None = None
        self._again: weakref.ref[_Last] | None = None

    def watch(self) -> None:
        """Watch unraisable exceptions from now on."""
        if self._before is None:
            self._before = sys.unraisablehook
            sys.unraisablehook = self._unraisable

    def leave(self) -> None:
        """Stop watching. If another hook has been installed over this one, it stays and passes everything on."""
        if self._before is not None and sys.unraisablehook == self._unraisable:
            sys.unraisablehook, self._before = self._before, None

    def _unraisable(self, unraisable: Any) -> None:
        trace = unraisable.exc_traceback
        if unraisable.exc_type is not KeyboardInterrupt or trace is None or trace.tb_frame.f_code is not self._code:
            (self._before or sys.__unraisablehook__)(unraisable)
            return
        # Raised here, the exception would be lost again. So compiled code without Python instructions raises it, when
        # `last` is destroyed, which is after this function returns.
        last = _Last()
        self._again = weakref.ref(last, partial(next, map(interrupt_main, (signal.SIGINT,))))


class _Last:
    """Destroyed when the function that holds it returns."""
