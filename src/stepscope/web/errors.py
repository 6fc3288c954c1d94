"""What the web application refuses on purpose; each text says what to do."""

from __future__ import annotations

from stepscope.errors import StepscopeError


class UnknownRun(StepscopeError):
    """There is no run of this name."""


class NotReady(StepscopeError):
    """A run that is still being read."""


class RunBroken(StepscopeError):
    """A run that cannot be read, or whose files are gone; the text says why."""


class AnswerFailed(StepscopeError):
    """A question failed by a fault of stepscope, which its log describes; clients see no more than that."""
