"""What an answer from a replay of the job rests on, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.selection import named_numbers

if TYPE_CHECKING:
    from stepscope.run import Run

GOOD_ERROR = 0.05
"""From this error of the replay on, the answer warns: such jobs were left out by the study that introduced the method
("Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025)."""


def replay_notes(run: Run, replayed_ns: float, recorded_ns: float) -> Iterator[str]:
    """How far a replay without changes is from the recording, and what it cannot know."""
    error = replayed_ns / recorded_ns - 1 if recorded_ns else 0.0
    if abs(error) >= GOOD_ERROR:
        yield (
            f"Careful: without changes, the replay takes {abs(error):.1%} {'longer' if error > 0 else 'less'} than the "
            "recording. Clocks may disagree, or dependencies that were not recorded may be missing, so these times are "
            "not certain."
        )
    else:
        yield f"Without changes, the replay is within {max(abs(error), 0.0001):.2%} of the recording."
    yield from unknowns(run)


def unknowns(run: Run) -> Iterator[str]:
    """What a replay of this job cannot know."""
    ranks = run.whole.ranks
    if len(ranks) == 1:
        yield (
            f"Only {named_numbers('rank', [ranks[0].rank])} was recorded. Whether it waits for other ranks, or they "
            "for it, is unknown: its communication keeps the recorded times, with the waiting in them."
        )
    elif not _share_calls(run):
        yield "No calls between ranks could be matched, so in the replay no rank waits for another."


def _share_calls(run: Run) -> bool:
    from stepscope.errors import Unavailable  # noqa: PLC0415 - a declaration is read without Polars

    try:
        return bool((run.whole.analyse("arrival")["members"] > 1).any())
    except Unavailable:
        return False
