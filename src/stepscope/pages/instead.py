"""What to say of a page without an answer: what to record, and which other command shows something of this run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stepscope.present import listed

if TYPE_CHECKING:
    from stepscope.run import Run

KERNELS = ("kernels", "kernels")
OPERATORS = ("operators", "ops")
TOTALS = ("operator_totals", "ops")
CALLS = ("collectives", "calls")
MARKED_STEPS = ("steps", "steps")
"""A table, and the command that shows what is in it."""


def recorded_by(how: str, *others: tuple[str, str]) -> Callable[[Run], str]:
    """What a page says if it has no answer.

    Args:
        how: What to record so that it has one, as a sentence without a full stop.
        others: Tables, and commands that show what is in them, named if the run has the table.
    """

    def sentences(run: Run) -> str:
        known = dict.fromkeys(f"`stepscope {command}`" for table, command in others if run.has(table))
        shows = f". Of this recording, {listed(list(known))} show{'s' * (len(known) == 1)} more" if known else ""
        return f". {how}{shows}"

    return sentences
