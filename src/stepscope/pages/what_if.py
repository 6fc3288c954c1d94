"""How long steps would take if some work took another time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stepscope.pages.base import Derived, Option, Page, Section
from stepscope.pages.replayed import replay_notes
from stepscope.present import duration
from stepscope.selection import describe_numbers
from stepscope.tables.base import Column

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

_CHANGES = ("without", "scale", "bandwidth", "ideal")

LITTLE = 0.0005
"""A saving below this share of a step is shown as none: it rounds to 0.0 %."""


FAINT = 0.002
"""Work taken away, summed over ranks, of which below this share of a step nothing can be expected."""

FEW = 4
"""Of fewer steps, all savings are the range."""


def _mean(steps: pl.DataFrame) -> Iterator[str]:
    """The mean step before and after."""
    now, then, less, unsure = (_mean_of(steps, f"{name}_ns") for name in ("replayed", "changed", "less", "unmatched"))
    saved = now - then
    little = LITTLE * now
    if abs(saved) >= little and saved:
        which = "the mean {step}" if steps.height > 1 else "{the_step}"
        most = ("at least ", "at most ") if unsure * saved > 0 else ("", "")
        yield (
            f"With this, {which} takes {most[saved < 0]}{duration(then)} instead of {duration(now)}: it "
            f"{'saves' if saved > 0 else 'costs'} {most[1]}{duration(abs(saved))} ({abs(saved) / now:.1%})"
            f"{_spread(steps, little, costs=saved < 0)}."
        )
        if unsure * saved > 0:
            yield (
                "At most, as calls with members that were not recorded may wait for these, and such waiting would stay."
            )
    elif abs(less) > FAINT * now:
        done = "taken away" if less > 0 else "added"
        yield (
            f"This hardly changes {{the_steps}}, although {duration(abs(less))} of work are {done} in {{a_step}}, "
            "summed over ranks: other work takes as long at the same time."
        )
    else:
        yield "Nothing changes: what was named takes hardly longer than usual, or no time at all."


def _spread(steps: pl.DataFrame, little: float, *, costs: bool) -> str:
    """Between what the savings, or costs, of the steps lie."""
    sign = -1 if costs else 1
    values = (sign * steps["saving_ns"]).sort()
    few = steps.height < FEW
    low, high = (float(values.quantile(q, "nearest") or 0) for q in ((0, 1) if few else (0.25, 0.75)))
    # A replay is not exact to the last microsecond.
    low = 0.0 if abs(low) < little else low
    if duration(low) == duration(high):
        return ""
    where = "depending on the {step}" if few else "in the middle half of the {steps}"
    if low < 0:
        less, more = ("save", "cost") if costs else ("cost", "save")
        return f"; {{steps}} {less} up to {duration(-low)} and {more} up to {duration(high)}"
    return f", {duration(low)} to {duration(high)} {where}"


def _mean_of(steps: pl.DataFrame, column: str) -> float:
    return float(sum(steps[column])) / steps.height


def _steps(run: Run, steps: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """What each step takes, with costs in place of savings if there are more of them."""
    import polars as pl

    shown = steps.drop("unmatched_ns")
    if sum(steps["saving_ns"]) > 0 or not (steps["saving_ns"] < 0).any():
        return Derived(shown)
    names = ("saving_ns", "saving_ratio", "less_ns")
    return Derived(shown.with_columns(-pl.col(name) for name in names), columns=_COSTS)


_COSTS = (
    Column("saving_ns", "int64", "", title="costs"),
    Column("saving_ratio", "float64", "", title="costs %"),
    Column("less_ns", "int64", "", title="work added", importance=30),
)


def _notes(run: Run, steps: pl.DataFrame) -> Iterator[str]:
    yield from replay_notes(run, steps["error_ratio"].to_list())


def _unchanged(run: Run, found: pl.DataFrame) -> Iterator[str]:  # noqa: ARG001 - one signature for all
    yield from _notes(run, run.whole.analyse("what_if"))


def _suspects(found: pl.DataFrame) -> Iterator[str]:
    """What the figures are, and how to replay without one of them."""
    if found.is_empty():
        yield "No rank is clearly slower than its peers. --ideal shows what all small differences cost together."
        return
    first = found.row(0, named=True)
    words = _words(first)
    if found.height > 1:
        every = duration(sum(found["cost_ns"]))
        yield (
            f"Mending all of them saves {every} of {{a_step}}; `cost` is the share of each. `alone` is what mending "
            f"only this one saves{f', as --without {words} shows' if words else ''}."
        )
    elif words:
        yield f"--without {words} shows this {{by_step}}."


def _words(row: dict[str, Any]) -> str:
    """What --without needs for this suspect; empty if it is another rank each time."""
    if row["pattern"] == "rotating":
        return ""
    ranks = describe_numbers([int(rank) for rank in row["ranks"].split(", ")])
    steps = "" if row["steps_late"] == row["steps"] else f",step={describe_numbers(sorted(row['slow_steps']))}"
    return f"rank={ranks},kind={row['kind']}{steps}"


def _causes(run: Run, found: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """What each slow rank, or unit, costs."""
    return Derived(
        found.select(
            "ranks", "kind", "pattern", "cost_ns", "cost_ratio", "saving_low_ns", "saving_high_ns", "alone_ns"
        ),
        columns=[Column("alone_ns", "int64", "", title="alone", importance=62)],
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
            derived=_steps,
            sentences=_mean,
            notes=_notes,
            only_with=_CHANGES,
        ),
        Section(
            "slow_ranks",
            "What mending each slow rank would save",
            derived=_causes,
            sentences=_suspects,
            rows=8,
            only_without=_CHANGES,
        ),
        Section("work_names", "What --without and --scale can name here", notes=_unchanged, only_without=_CHANGES),
    ],
    options=[
        Option(
            "without",
            "text",
            "Take away what these take longer than usual, e.g. rank=6 or link=0-4.",
            "WHO",
            joined=";",
        ),
        Option("scale", "text", "Work that takes another time, e.g. op=FlashAttention,0.7.", "WHAT,FACTOR", joined=";"),
        Option(
            "bandwidth", "text", "Communication moves data faster, e.g. 2x or transport=RDMA,2x.", "FACTOR", joined=";"
        ),
        Option("ideal", "flag", "No rank takes longer than its peers for its own work.", "", default=False),
    ],
    more="WHO and WHAT are one or several, separated by commas, of rank=0,3-5 host=NAME group=NAME stage=N step=10-12 "
    "kind=KIND op=PART-OF-A-NAME, and of communication link=0-4 (two ranks or hosts), nic=3 (a rank or host), "
    "transport=RDMA and size=1MB-64MB. Options may be repeated, or several changes separated by semicolons; all are "
    "made together. Without any, the command lists what can be named in the job.\n\n"
    "Usual is what comparable ranks take for the same work, and what calls of the same operation, size and number of "
    "members take elsewhere, or typical links of the same transport. Of ranks, hosts and stages, --without takes away "
    "the excess of their own work; of links and interfaces, that of transmission; of groups, both.",
    scope="job",
)
