"""How long steps would take if some work took another time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.pages.base import Derived, Option, Page, Section

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

GOOD_ERROR = 0.05
"""From this error of the replay on, the answer warns: such jobs were left out by the study that introduced the method
("Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025)."""


_TIMES = ("recorded", "replayed", "changed")


def _mean(steps: pl.DataFrame) -> Iterator[str]:
    """The mean step before and after, and how good the replay is."""
    count = steps.height
    recorded, replayed, changed = (sum(steps[f"{name}_ns"]) / count / 1e6 for name in _TIMES)
    share = (replayed - changed) / replayed if replayed else 0.0
    yield f"The mean step would take {changed:.3f} ms instead of {replayed:.3f} ms: {share:+.1%} saved.".replace(
        "+", ""
    )
    error = replayed / recorded - 1 if recorded else 0.0
    yield from replay_error(error)


def replay_error(error: float) -> Iterator[str]:
    """How far a replay without changes is from the recording."""
    if abs(error) >= GOOD_ERROR:
        yield (
            f"Careful: without changes the replay takes {error:+.1%} as long as the recording. Clocks may disagree, or "
            "dependencies that were not recorded may be missing, so these times are not certain."
        )
    else:
        yield f"Without changes, the replay is {abs(error):.2%} from the recording."


def _causes(run: Run, found: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """What each slow rank, or unit, costs."""
    return Derived(
        found.select("ranks", "kind", "pattern", "cost_ns", "cost_ratio", "saving_low_ns", "saving_high_ns", "alone_ns")
    )


PAGE = Page(
    "what-if",
    "Show how long steps would take if some work took another time, by replaying the job.",
    [
        Section(
            "what_if",
            "{Steps} with these changes",
            takes={name: name for name in ("without", "scale", "bandwidth", "ideal")},
            sentences=_mean,
        ),
        Section("slow_ranks", "What mending each slow rank would save", derived=_causes, rows=8),
    ],
    options=[
        Option("without", "text", "Take away what these take longer than their peers, e.g. rank=6.", "WHO"),
        Option("scale", "text", "Work that takes another time, e.g. op=FlashAttention,0.7.", "WHAT,FACTOR"),
        Option("bandwidth", "text", "All communication moves data faster, e.g. 2x.", "FACTOR"),
        Option("ideal", "flag", "No rank takes longer than its peers.", "", default=False),
    ],
    more="WHO and WHAT are one or several of rank=, host=, group=, kind=, op= and step=, separated by commas; several "
    "changes are separated by semicolons, and made together. Kinds of work are computing, memory, dispatch, "
    "data_loading, compile, garbage_collection and checkpoint.",
    scope="job",
)
