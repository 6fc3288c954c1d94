"""Hooks around functions of the framework, and their removal. A hook's own failure never reaches training."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable
from typing import Any

log = logging.getLogger("stepscope")

Enter = Callable[[tuple[Any, ...], dict[str, Any]], Any]
"""Called with the arguments before the function; returns a token, or None if there is nothing to do afterwards."""
Leave = Callable[[Any, bool], None]
"""Called with the token after the function, and with whether it returned (and did not raise)."""

_MISSING = object()


class Hooks:
    """Hooks that were put in place, each to be taken back by `remove`."""

    def __init__(self) -> None:
        self._places: list[tuple[Any, str, object, object]] = []
        self._switches: list[_Switch] = []

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of a class or module; `remove` restores it."""
        self._places.append((owner, name, vars(owner).get(name, _MISSING), value))
        setattr(owner, name, value)

    def around(self, owner: Any, name: str, enter: Enter, leave: Leave) -> None:
        """Put `enter` and `leave` around a method of a class."""
        self.put(owner, name, self._hooked(getattr(owner, name), enter, leave))

    def around_everywhere(self, function: Any, enter: Enter, leave: Leave) -> None:
        """Put `enter` and `leave` around a function, in all modules that imported it by its name."""
        hooked, name = self._hooked(function, enter, leave), function.__name__
        for module in list(sys.modules.values()):
            if getattr(module, "__dict__", {}).get(name) is function:
                self.put(module, name, hooked)

    def remove(self) -> None:
        """Restore all. What others have put on top of a hook stays; the hook below it then does nothing."""
        for switch in self._switches:
            switch.on = False
        replaced = {id(value): original for _, _, original, value in self._places}
        for owner, name, original, value in reversed(self._places):
            if vars(owner).get(name) is not value:
                continue
            if original is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
        self._restore_later_imports(replaced)
        self._places.clear()
        self._switches.clear()

    def _restore_later_imports(self, replaced: dict[int, object]) -> None:
        """Modules that imported a hooked function after it was hooked get the original too."""
        functions = {name for owner, name, _, _ in self._places if not isinstance(owner, type)}
        for module in list(sys.modules.values()):
            names = getattr(module, "__dict__", {})
            for name in functions:
                original = replaced.get(id(names.get(name)))
                if original is not None:
                    setattr(module, name, original)

    def _hooked(self, original: Any, enter: Enter, leave: Leave) -> Callable[..., Any]:
        switch = _Switch(getattr(original, "__qualname__", str(original)))
        self._switches.append(switch)

        @functools.wraps(original)
        def hooked(*args: Any, **kwargs: Any) -> Any:
            token = None
            if switch.on:
                try:
                    token = enter(args, kwargs)
                except Exception as error:
                    switch.fail(error)
            if token is None:
                return original(*args, **kwargs)
            returned = False
            try:
                result = original(*args, **kwargs)
                returned = True
                return result
            finally:
                try:
                    leave(token, returned)
                except Exception as error:
                    switch.fail(error)

        return hooked


class _Switch:
    """Whether one hook still works."""

    def __init__(self, name: str) -> None:
        self.on = True
        self._name = name

    def fail(self, error: Exception) -> None:
        """The hook failed: say so, and use it no more."""
        if self.on:
            self.on = False
            log.warning(
                "Profiler: the hook on %s failed and is taken out (%s: %s)", self._name, type(error).__name__, error
            )
