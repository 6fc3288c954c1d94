"""Ctrl-C within a function that Python calls by itself, such as those of `gc.callbacks`.

The handler of a signal runs where Python code runs next. After a collection that is the function called then, and what
is raised there Python prints and forgets: training would go on as if nobody had asked it to end.
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
    """Has Ctrl-C raised again, in the script, if it was lost in a function.

    Args:
        function: The function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._code: CodeType = function.__code__
        self._before: Callable[[Any], Any] | None = None
        self._again: weakref.ref[_Last] | None = None

    def watch(self) -> None:
        """Look at what Python forgets from now on."""
        if self._before is None:
            self._before = sys.unraisablehook
            sys.unraisablehook = self._unraisable

    def leave(self) -> None:
        """No longer look at it. If another hook has been put on top of this one, it stays and passes everything on."""
        if self._before is not None and sys.unraisablehook == self._unraisable:
            sys.unraisablehook, self._before = self._before, None

    def _unraisable(self, unraisable: Any) -> None:
        trace = unraisable.exc_traceback
        if unraisable.exc_type is not KeyboardInterrupt or trace is None or trace.tb_frame.f_code is not self._code:
            (self._before or sys.__unraisablehook__)(unraisable)
            return
        # The handler would run again in the next instruction of this function, and be lost as well. So what calls for
        # it has no instructions: it is compiled code, and runs when `last` goes, which is after this function.
        last = _Last()
        self._again = weakref.ref(last, partial(next, map(interrupt_main, (signal.SIGINT,))))


class _Last:
    """Goes when a function is over."""
