"""From light records to the cause: profiles of some steps, stacks, dumps of last calls, active checks, and when to make
them. `in_worker` runs in the training process, `dynolog` and `stacks` on its node, `escalation` in the manager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepscope.live.capture.escalation import Actions as Actions
    from stepscope.live.capture.escalation import Escalation as Escalation


def __getattr__(name: str) -> Any:
    """The names of the manager's part; a training process never loads it."""
    if name in ("Actions", "Escalation"):
        from stepscope.live.capture import escalation  # noqa: PLC0415

        return getattr(escalation, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
