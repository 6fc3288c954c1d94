"""All known faults of MindInsight, and which one is behind a difference."""

from __future__ import annotations

import faults
import faults_pipeline
import faults_ranks
from asked import Asked
from differing import Difference
from fault import Fault

from stepscope.run import Run

FAULTS: tuple[Fault, ...] = (*faults.FAULTS, *faults_pipeline.FAULTS, *faults_ranks.FAULTS)


def explain(asked: Asked, difference: Difference, run: Run | None) -> str | None:
    """The name of the fault behind a difference; None if there is none."""
    if part := faults_pipeline.of_one_rank(asked, difference, run):
        asked, difference, run = part
    return next((fault.name for fault in FAULTS if fault.explains(asked, difference, run)), None)
