"""What the times of a run are of, where its recordings mark no steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report.sentences import Sentence

if TYPE_CHECKING:
    from stepscope.run import Run


def counted(run: Run) -> Sentence | None:
    """A sentence about recordings without steps: which iterations were found, else that times are of all of it.

    None if steps are marked.
    """
    if run.iterations is not None:
        found = run.iterations
        return Sentence("iterations", {"count": found.count, "operators": found.operators}, "iteration")
    return Sentence("whole_recording", per="recording") if run.marks_no_steps else None
