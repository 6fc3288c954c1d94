"""How long steps would take if some work took another time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.pages.base import Derived, Option, Page, Section
from stepscope.pages.replayed import replay_notes
from stepscope.present import duration

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

_CHANGES = ("without", "scale", "bandwidth", "ideal")

LITTLE = 0.0005
"""A saving below this share of a step is shown as none: it rounds to 0.0 %."""


FEW = 4
"""Of fewer steps, all savings are the range."""


def _mean(steps: pl.DataFrame) -> Iterator[str]:
    """The mean step before and after."""
    now, then, less = (_mean_of(steps, f"{name}_ns") for name in ("replayed", "changed", "less"))
    saved = (now - then) / now if now else 0.0
    if abs(saved) >= LITTLE:
        few = steps.height < FEW
        low, high = (
            duration(float(steps["saving_ns"].quantile(q, "nearest") or 0)) for q in ((0, 1) if few else (0.25, 0.75))
        )
        which = "" if few else " in the middle half of the {steps}"
        spread = f" (saving {low} to {high}{which})" if low != high else ""
        word = "shorter" if saved > 0 else "longer"
        which = "the mean {step}" if steps.height > 1 else "{the_step}"
        yield f"With this, {which} takes {duration(then)} instead of {duration(now)}: {abs(saved):.1%} {word}{spread}."
    elif less:
        done = "taken away" if less > 0 else "added"
        yield (
            f"This hardly changes {{the_steps}}, although {duration(abs(less))} of work are {done} in {{a_step}}, "
            "summed over ranks: other work takes as long at the same time."
        )
    else:
        yield "Nothing changes: what was named takes no longer than usual, or no time at all."


def _mean_of(steps: pl.DataFrame, column: str) -> float:
    return float(sum(steps[column])) / steps.height


def _notes(run: Run, steps: pl.DataFrame) -> Iterator[str]:
    yield from replay_notes(run, steps["error_ratio"].to_list())


def _unchanged(run: Run, found: pl.DataFrame) -> Iterator[str]:  # noqa: ARG001 - one signature for all
    yield from _notes(run, run.whole.analyse("what_if"))


def _nobody(found: pl.DataFrame) -> Iterator[str]:
    if found.is_empty():
        yield "No rank is clearly slower than its peers. --ideal shows what all small differences cost together."


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
            takes={name: name for name in _CHANGES},
            hidden=("recorded_ns",),
            sentences=_mean,
            notes=_notes,
            only_with=_CHANGES,
        ),
        Section(
            "slow_ranks",
            "What mending each slow rank would save",
            derived=_causes,
            sentences=_nobody,
            rows=8,
            only_without=_CHANGES,
        ),
        Section("work_names", "What --without and --scale can name here", notes=_unchanged, only_without=_CHANGES),
    ],
    options=[
        Option("without", "text", "Take away what these take longer than usual, e.g. rank=6 or link=0-4.", "WHO"),
        Option("scale", "text", "Work that takes another time, e.g. op=FlashAttention,0.7.", "WHAT,FACTOR"),
        Option("bandwidth", "text", "Communication moves data faster, e.g. 2x or transport=RDMA,2x.", "FACTOR"),
        Option("ideal", "flag", "No rank takes longer than its peers for its own work.", "", default=False),
    ],
    more="WHO and WHAT are one or several, separated by commas, of rank=0,3-5 host=NAME group=NAME stage=N step=10-12 "
    "kind=KIND op=PART-OF-A-NAME, and of communication link=0-4 (two ranks or hosts), nic=3 (a rank or host), "
    "transport=RDMA and size=1MB-64MB. Several changes are separated by semicolons, and made together. Without any, "
    "the command lists what can be named in the job.\n\n"
    "Usual is what comparable ranks take for the same work, and what calls of the same operation, size and number of "
    "members take elsewhere, or typical links of the same transport. Of ranks, hosts and stages, --without takes away "
    "the excess of their own work; of links and interfaces, that of transmission; of groups, both.",
    scope="job",
)
