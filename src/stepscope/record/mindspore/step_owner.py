"""Which call ends a step if several could: two optimizers in one loop, or a script that trains twice."""

from __future__ import annotations

import weakref
from typing import Any


class StepOwner:
    """One optimizer (or compiled training function) at a time ends the steps: the first one called.

    Others called between two of its calls belong to the same step. If one is called twice in between, or a new one
    appears after the owner has ended several steps alone, training has moved on to it.
    """

    def __init__(self) -> None:
        self._owner: weakref.ref[Any] | None = None
        self._ended = 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()
        self._since: weakref.WeakSet[Any] = weakref.WeakSet()

    def ends_step(self, caller: Any) -> bool:
        """Whether this call of `caller` ends a step."""
        owner = self._owner() if self._owner is not None else None
        if caller is not owner and owner is not None:
            moved_on = caller in self._since or (self._ended >= 2 and caller not in self._known)
            if not moved_on:
                self._known.add(caller)
                self._since.add(caller)
                return False
        if caller is not owner:
            self._owner, self._ended = weakref.ref(caller), 0
            self._known.add(caller)
        if self._since:
            self._since.clear()
        self._ended += 1
        return True
