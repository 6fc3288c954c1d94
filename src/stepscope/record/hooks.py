"""Hooks around functions of a framework. A hook's own failure never reaches training."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from stepscope.record.patches import Patches

log = logging.getLogger("stepscope")

Enter = Callable[[tuple[Any, ...], dict[str, Any]], Any]
"""Called with the arguments before the function; returns a token, or None if there is nothing to do afterwards."""
Leave = Callable[[Any, bool], None]
"""Called after the function with the token and whether the function returned normally."""


class Switch:
    """Whether a hook still works.

    Args:
        subject: What is no longer recorded if it fails, for the warning.
    """

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.off = False
        """Removed or failed: calls go straight through."""

    def failed(self, error: Exception) -> None:
        """The hook's own code failed: warn and switch it off. Training must not notice."""
        if not self.off:
            self.off = True
            log.warning("Profiler: %s are no longer recorded (%s: %s)", self.subject, type(error).__name__, error)

    def attempt(self, action: Callable[..., object], *arguments: object) -> None:
        """Call `action` as the hook's own code, unless the hook is off."""
        if not self.off:
            try:
                action(*arguments)
            except Exception as error:
                self.failed(error)


class Hooks(Patches):
    """Patches that call one function before, and another after, what they replace."""

    def __init__(self) -> None:
        super().__init__()
        self._switches: list[Switch] = []

    def around(self, owner: Any, name: str, enter: Enter, leave: Leave) -> None:
        """Put `enter` and `leave` around a method of a class."""
        self.put(owner, name, self._hooked(getattr(owner, name), enter, leave))

    def around_everywhere(self, function: Any, enter: Enter, leave: Leave) -> None:
        """Put `enter` and `leave` around a function in all modules that import it; takes effect with `apply`."""
        self.put_everywhere(function, self._hooked(function, enter, leave))

    def undo(self) -> None:
        """Restore everything. Hooks that others have wrapped stay in place, but go straight through."""
        switches, self._switches = self._switches, []
        for switch in switches:
            switch.off = True
        super().undo()

    def _hooked(self, original: Any, enter: Enter, leave: Leave) -> Callable[..., Any]:
        switch = Switch(f"calls of {getattr(original, '__qualname__', original)}")
        self._switches.append(switch)

        @functools.wraps(original)
        def hooked(*args: Any, **kwargs: Any) -> Any:
            token, returned = None, False
            try:  # from here on, as a signal handler of the user may raise at any time
                if not switch.off:
                    try:
                        token = enter(args, kwargs)
                    except Exception as error:
                        switch.failed(error)
                result = original(*args, **kwargs)
                returned = True
                return result
            finally:
                if token is not None:
                    try:
                        leave(token, returned)
                    except Exception as error:
                        switch.failed(error)

        return hooked
