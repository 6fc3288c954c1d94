"""How long steps would take if some work took another time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stepscope.pages.base import Derived, Option, Page, Section
from stepscope.pages.layout import LAYOUT
from stepscope.pages.replayed import own_step_ns, replay_notes
from stepscope.present import duration
from stepscope.selection import describe_numbers, named_numbers
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
    replayed = _mean_of(steps, "recorded_ns")
    if (own := own_step_ns(run, replayed)) is not None:
        yield (
            f"This is {{the_step}} of the whole job, {duration(replayed)} on average; a rank's own, as «`stepscope "
            f"analyze`» shows it, takes {duration(own)}, since ranks neither begin nor end at once."
        )


def _unchanged(run: Run, found: pl.DataFrame) -> Iterator[str]:  # noqa: ARG001 - one signature for all
    yield from _notes(run, run.whole.analyse("what_if"))


def _nobody(found: pl.DataFrame) -> Iterator[str]:
    if found.is_empty():
        yield "No rank is clearly slower than its peers. «--ideal» shows what all small differences cost together."


def _costs(run: Run, found: pl.DataFrame) -> Derived:
    """What each slow rank, unit or link costs, most expensive first."""
    return Derived(_players(run, found).select(*(column.name for column in _OF_PLAYERS)), columns=_OF_PLAYERS)


_OF_PLAYERS = (
    Column("what", "string", "", importance=99),
    Column("kind", "string", "", importance=98),
    Column("pattern", "string", "", importance=40),
    Column("cost_ns", "int64", "", importance=97),
    Column("cost_ratio", "float64", "", importance=60),
    Column("saving_low_ns", "int64", "", title="at least", importance=61),
    Column("saving_high_ns", "int64", "", title="at most", importance=61),
    Column("alone_ns", "int64", "", title="alone", importance=62),
)


def _about_costs(run: Run, found: pl.DataFrame) -> Iterator[str]:
    """What the figures are, and how to replay without one of them."""
    players = _players(run, found)
    if players.is_empty():
        return
    words = players["words"][0]
    if players.height == 1:
        if words:
            yield f"«--without» {words} shows this {{by_step}}."
        return
    yield (
        f"Mending all of them saves {duration(sum(players['cost_ns']))} of {{a_step}}; `cost` is the share of each. "
        f"`alone` is what mending only this one saves{f', as «--without» {words} shows' if words else ''}."
    )


def causes(run: Run) -> pl.DataFrame:
    """What could be mended, most expensive first: slow ranks and links, what mending each saves (ns of a step), and the
    `words` that name it for `without`; empty where nothing names it.

    Raises:
        Unavailable: If the job cannot be replayed.
    """
    return _players(run, run.whole.analyse("slow_ranks"))


def _players(run: Run, ranks: pl.DataFrame) -> pl.DataFrame:
    """Slow ranks and links with what mending each saves (columns of `_OF_PLAYERS`), and what names them for --without
    (`words`; empty if nothing does)."""
    import polars as pl

    figures = ["pattern", "cost_ns", "saving_low_ns", "saving_high_ns", "alone_ns"]
    of_ranks = ranks.select(
        pl.Series("what", [named_numbers("rank", _numbers(one)) for one in ranks["ranks"]], dtype=pl.String),
        "kind",
        *figures,
        pl.Series("words", [_words(row) for row in ranks.iter_rows(named=True)], dtype=pl.String),
    )
    links = _slow_links(run)
    whats = [_link_words(row) for row in links.iter_rows(named=True)]
    of_links = links.select(
        pl.Series("what", [what for what, _ in whats], dtype=pl.String),
        pl.col("transport").alias("kind"),
        *figures,
        pl.Series("words", [words for _, words in whats], dtype=pl.String),
    )
    mean = _step_ns(run) if of_links.height or of_ranks.height else 0.0
    both = pl.concat([of_ranks, of_links]).sort(-pl.col("cost_ns"), "what", "kind")
    return both.with_columns(cost_ratio=pl.col("cost_ns") / mean if mean else pl.lit(None, pl.Float64))


def _slow_links(run: Run) -> pl.DataFrame:
    """Slow links of which a replay shows what they cost, which is `cost_ns` here."""
    import polars as pl

    from stepscope.analysis.communication.slow_links import SCHEMA
    from stepscope.errors import Unavailable

    try:
        found = run.whole.analyse("slow_links")
    except Unavailable:
        found = pl.DataFrame(schema=SCHEMA)
    return found.drop_nulls("exposed_ns").with_columns(cost_ns=pl.col("exposed_ns"))


def _step_ns(run: Run) -> float:
    """The mean step of the replay."""
    steps = run.whole.analyse("what_if")
    return _mean_of(steps, "replayed_ns")


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(", ")]


def _link_words(row: dict[str, Any]) -> tuple[str, str]:
    """What a slow link is called, and what names it for --without."""
    steps = f",step={describe_numbers(row['slow_steps'])}" if len(row["slow_steps"]) < row["steps"] else ""
    if row["unit"] == "link":
        ends = f"{row['rank_a']}-{row['rank_b']}"
        return f"link {ends}", f"link={ends}{steps}"
    if row["unit"] == "nic":
        return f"nic of rank {row['rank_a']}", f"nic={row['rank_a']}{steps}"
    if row["unit"] == "host":
        return f"nic of {row['host']}", f"nic={row['host']}{steps}"
    return f"links of {named_numbers('rank', _numbers(row['ranks']))}", ""


def _words(row: dict[str, Any]) -> str:
    """What --without needs for a slow rank; empty if it is another one each time."""
    if row["pattern"] == "rotating":
        return ""
    steps = "" if row["steps_late"] == row["steps"] else f",step={describe_numbers(sorted(row['slow_steps']))}"
    return f"rank={describe_numbers(_numbers(row['ranks']))},kind={row['kind']}{steps}"


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
            "What mending each slow rank or link would save",
            derived=_costs,
            sentences=_nobody,
            notes=_about_costs,
            rows=8,
            only_without=_CHANGES,
        ),
        Section("work_names", "What changes can name here", notes=_unchanged, only_without=_CHANGES),
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
        LAYOUT,
        Option("ideal", "flag", "No rank takes longer than its peers for its own work.", "", default=False),
    ],
    more="WHO and WHAT are one or several, separated by commas, of rank=0,3-5 host=NAME group=NAME stage=N step=10-12 "
    "kind=KIND op=PART-OF-A-NAME, and of communication link=0-4 (two ranks or hosts), nic=3 (a rank or host), "
    "transport=RDMA and size=1MB-64MB. Options may be repeated, or several changes separated by semicolons; all are "
    "made together. Without any, the command lists what can be named in the job.\n\n"
    "Usual is what comparable ranks take for the same work, and what calls of the same operation, size and number of "
    "members take elsewhere, or typical links of the same transport. Of ranks, hosts and stages, «--without» takes "
    "away the excess of their own work; of links and interfaces, that of transmission; of groups, both.",
    scope="job",
)
