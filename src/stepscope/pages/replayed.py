"""What an answer from a replay of the job rests on, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum
from typing import TYPE_CHECKING

from stepscope.selection import named_numbers

if TYPE_CHECKING:
    from stepscope.run import Run

GOOD_ERROR = 0.05
"""From this error of the replay on, the answer warns: such jobs were left out by the study that introduced the method
("Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025)."""

OTHERWISE = 0.01
"""Share by which the step of a replay and the ranks' own steps must differ for both to be stated; chosen by us."""


def replay_notes(run: Run, errors: Sequence[float]) -> Iterator[str]:
    """How far a replay without changes is from the recording, and what it cannot know.

    Args:
        run: The job.
        errors: The error of each step: 0.1 if the replay takes a tenth longer.
    """
    mean = fsum(errors) / len(errors) if errors else 0.0
    worst = max(errors, key=abs, default=0.0)
    if abs(mean) >= GOOD_ERROR or abs(worst) >= GOOD_ERROR:
        which = "" if len(errors) == 1 else " on average" if abs(mean) >= GOOD_ERROR else " in the worst {step}"
        error = mean if abs(mean) >= GOOD_ERROR else worst
        yield (
            f"Careful: without changes, the replay takes {abs(error):.1%} {'longer' if error > 0 else 'less'} than the "
            f"recording{which}. Clocks may disagree, or dependencies that were not recorded may be missing, so these "
            "times are not certain."
        )
    else:
        good = f"Without changes, the replay is within {max(abs(worst), 0.0001):.2%} of the recording."
        begin = "its first work" if len(errors) < 2 else "the end of the one before"
        last = "its last work" if len(run.whole.ranks) == 1 else "its last work on any rank"
        yield f"{good} Here, {{a_step}} lasts from {begin} to the end of {last}."
    yield from unknowns(run)


def own_step_ns(run: Run, replayed_ns: float) -> float | None:
    """The mean of the ranks' own steps, as the verdict and the tables of ranks state it.

    None if it is unknown, or about as long as the step of the job that a replay measures.

    Args:
        run: The job.
        replayed_ns: The mean step of its replay, which lasts until the last work on any rank.
    """
    from stepscope.errors import Unavailable

    try:
        ranks = run.whole.analyse("time_by_rank")
    except Unavailable:
        return None
    own = fsum(ranks["window_ns"] * ranks["steps"]) / max(sum(ranks["steps"]), 1)
    return own if abs(own - replayed_ns) >= OTHERWISE * replayed_ns else None


def unknowns(run: Run, *, replayed: bool = True) -> Iterator[str]:
    """What a replay of this job cannot know; or only a comparison, if it is not `replayed`."""
    ranks = run.whole.ranks
    searched = replayed_steps(run)
    if searched is not None and searched[0]:
        are = "replayed" if replayed else "compared"
        yield (
            f"Only the last {searched[0]} of {searched[1]} {{steps}} are {are}: more do not fit into memory (limit "
            "`operations` of `replayed_steps`)."
        )
    if len(ranks) == 1:
        yield (
            f"Only {named_numbers('rank', [ranks[0].rank])} was recorded. Whether it waits for other ranks, or they "
            "for it, is unknown: its communication keeps the recorded times, with the waiting in them."
        )
        return
    matched, partly, left_out = _calls(run)
    if left_out and replayed:
        their, are = ("its", "is") if len(left_out) == 1 else ("their", "are")
        yield (
            f"{_sentence(named_numbers('rank', left_out))} {are} left out of the replay: most of {their} calls "
            "match no others', e.g. because the recording was cut off. Whether others wait for "
            f"{'it' if len(left_out) == 1 else 'them'} is unknown."
        )
    if not matched:
        yield "No calls between ranks could be matched, so in the replay no rank waits for another."
    elif partly:
        yield (
            f"{partly:.0%} of the calls have members that were not recorded. These may be waited for, too, so "
            "the calls keep what they took after the last recorded member."
        )


def replayed_steps(run: Run) -> tuple[int, int] | None:
    """How many of the job's steps are replayed, and how many there are; None if they are all replayed."""
    import polars as pl

    from stepscope.analysis.replay.replayed_steps import TOO_LONG
    from stepscope.errors import Unavailable

    if not run.whole.has("steps"):
        return None
    try:
        replayed = run.whole.analyse("replayed_steps").height
    except Unavailable as reason:
        if TOO_LONG not in str(reason):
            return None
        replayed = 0
    every = run.whole.table("steps").select(pl.col("step").n_unique()).collect().item()
    return (replayed, every) if replayed < every else None


def _calls(run: Run) -> tuple[bool, float, list[int]]:
    """Whether calls of several ranks were matched, in which share of them members are missing, and the ranks whose
    calls match no others'."""
    from stepscope.analysis.methods.job_graph import loose_ranks
    from stepscope.errors import Unavailable

    try:
        arrival = run.whole.analyse("arrival")
    except Unavailable:
        return False, 0.0, []
    matched = arrival.filter(arrival["members"] > 1)
    missing = (matched["members"] < matched["group_size"]).mean()
    return matched.height > 0, missing if isinstance(missing, float) else 0.0, loose_ranks(arrival)


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def other_pages(run: Run, *, of_ranks: str = "«`stepscope what-if`» and «`stepscope heat-map`»") -> str:
    """What pages about any job show of a run.

    Args:
        run: The run.
        of_ranks: Commands that show which ranks cost time.
    """
    ranks = f", and {of_ranks} which ranks cost time" if len(run.whole.ranks) > 1 else ""
    return f". «`stepscope critical-path`» shows what decides how long a step takes{ranks}"
