"""What the times of a run are of, where its recordings mark no steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.present import plural

if TYPE_CHECKING:
    from stepscope.run import Run


def counted(run: Run) -> str:
    """A sentence about recordings without steps: which iterations were found, else that times are of all of it.

    Empty where steps are marked.
    """
    if run.iterations is not None:
        found = run.iterations
        return (
            f"No steps are marked: {plural(found.count, 'iteration')} found by repetition of "
            f"{plural(found.operators, 'operator')}."
        )
    return "No steps are marked: times are of the whole recording." if run.marks_no_steps else ""
