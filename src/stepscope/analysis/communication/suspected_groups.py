"""Which process groups, or ranks that send to each other, transmit more slowly than comparable ones, and when."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.communication.comparable_calls import SAME, sized_calls
from stepscope.analysis.communication.comparable_calls import Limits as SizeLimits
from stepscope.analysis.methods.call_positions import CALL
from stepscope.analysis.methods.chance import chance_of_late
from stepscope.analysis.methods.statistics import MAD_TO_SIGMA, rounded
from stepscope.analysis.methods.timing import timing
from stepscope.analysis.rank_lists import as_rank_list
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column, schema_of


@dataclass(frozen=True)
class Limits(SizeLimits):
    """When a group counts as slow."""

    slowdown_factor: float = limit(
        1.25, "of the median group's transmission", "healthy groups of a kind agree within 10 %"
    )
    score: float = limit(3.5, "robust deviations of log(transmission)", "Iglewicz and Hoaglin, 1993")
    floor: float = limit(0.05, "of log(transmission)", "smaller spread is noise")
    groups: int = limit(3, "comparable groups", "fewer give no median to compare with")
    pair_factor: float = limit(
        2.0, "of the only other group's transmission", "one other shows no spread, so only a large difference counts"
    )
    steps: int = limit(2, "steps in which it is slow, if not in all", "once may be chance")
    all_steps: int = limit(4, "steps, for those that are slow to show", "fewer show no usual step")
    host_ratio: float = limit(
        0.25, "of its steps at least, where processors move the data", "chosen by us: they are taken at any time"
    )
    most_ratio: float = limit(0.5, "of its steps at most, if not in all", "else it is unknown which ones are usual")
    chance: float = limit(0.1, "probability, for all groups together", "that one is slow in so many steps by chance")


COLUMNS = columns(
    Column("suspect", "int32", "Number of what is slow, from 0."),
    meaning("group", "Key of the process group."),
    Column("ranks", "string", "Members of the group, or the two ranks of a transfer, e.g. `0, 1`."),
    Column("source", "int32", "The rank that sends, if only what it sends to the other is slow; else null."),
    "step",
    Column("sequence", "int64", "Position of a slow call in its group, as in `arrival`."),
    "operation",
    meaning("transmit_ns", "How long it transmits."),
    Column("typical_ns", "int64", "How long this takes in comparable groups, or in its usual steps."),
    Column("slowdown_factor", "float64", "Time of all slow calls over the typical time."),
    meaning("score", "How far it stands out, in robust standard deviations; null if there is only one other group."),
    Column("beside", "string", "What is faster: `others`, or its own other `steps`.", values=("others", "steps")),
    Column("pattern", "string", "When it is slow, as in `late_ranks`."),
    Column("period", "int64", "Steps between recurrences; null if irregular."),
    meaning("steps", "Number of its steps."),
    nulls="source period score",
)

_PLACE = ["ranks", "way"]
"""Groups of the same ranks use the same links, transfers those of their direction (`way`, empty for others)."""

_SAME = [*SAME, "goes_up"]
"""What goes to the next stage and what comes back are sent at other moments, beside other work."""

_STEP = [*_PLACE, "step"]

MEDIAN_ERROR = 1.2533
"""Standard error of a median over that of a mean, of normal values."""


@analysis("job", COLUMNS, whole_job=True)
def suspected_groups(
    arrival: pl.DataFrame,
    links: pl.LazyFrame | None,
    suspected_links: pl.DataFrame | None = None,
    ranks: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Compare the transmission of each group, or pair of ranks that send to each other, with others, and with itself.

    Where links were recorded, they show which one is slow (`suspected_links`), so no group is named if any is. Calls
    are comparable if operation, size and numbers of members and of their hosts are equal. The transmission of a call is
    the shortest of its members' (`arrival`): the time from the last arrival to the first end; the size is the payload
    or, if that is unknown, the bytes that its members sent over links. Calls of unknown size are not compared, and
    groups on unknown hosts only with themselves. Transfers are compared with those in the same direction, to a higher
    or a lower rank. A group is slow if all its calls together take longer than in the median group, or in some steps
    longer than in its median step; where hosts move the data, in a few steps they may just have been busy. What that
    costs is `suspect_costs`.

    Returns:
        One row per slow group, or pair of ranks, and call in its slow steps.
    """
    if suspected_links is not None and not suspected_links.is_empty():
        return pl.DataFrame(schema=schema_of(COLUMNS))
    calls = _calls(arrival, links, ranks, limits)
    of_places = calls.group_by(*_PLACE, *_SAME).agg(own_ns=pl.col("transmit_ns").quantile(0.5, "lower"))
    kinds = of_places.with_columns(
        places=pl.len().over(_SAME), median_ns=pl.col("own_ns").quantile(0.5, "lower").over(_SAME)
    )
    known = calls.join(kinds, on=[*_PLACE, *_SAME], nulls_equal=True)
    least_ratio = 0.0 if arrival["on_device"].any() else limits.host_ratio
    steady, sometimes = _slower_than_others(known, limits), _slower_than_itself(known, least_ratio, limits)
    sometimes = sometimes.join(steady, on="ranks", how="anti")
    columns = [*_STEP, "score", "is_steady"]
    late = pl.concat(
        [steady.with_columns(is_steady=True).select(columns), sometimes.with_columns(is_steady=False).select(columns)]
    )
    if late.is_empty():
        return pl.DataFrame(schema=schema_of(COLUMNS))
    typical = pl.when("is_steady").then("median_ns").otherwise("own_ns")
    rows = known.join(late, on=_STEP).with_columns(typical_ns=rounded(typical))
    return _described(rows, late, known.select(_STEP).unique())


def _calls(
    arrival: pl.DataFrame, links: pl.LazyFrame | None, ranks: pl.LazyFrame | None, limits: Limits
) -> pl.DataFrame:
    """Matched calls in steps, with `ranks`: all that the group was seen with, or the two of a transfer."""
    sends = pl.col("point_to_point") & (pl.col("operation") == "send")
    matched = arrival.filter(
        (pl.col("members") > 1) & pl.col("group").is_not_null() & pl.col("step").is_not_null()
    ).with_columns(
        operation=pl.when("point_to_point").then(pl.lit("transfer")).otherwise("operation"),
        source=pl.when(sends).then("rank"),
    )
    of_groups = matched.group_by("group").agg(all_ranks=as_rank_list(pl.col("rank")))
    of_calls = matched.group_by(CALL).agg(
        pl.col("source").max(),  # of one that sends; others have none
        two=as_rank_list(pl.col("rank")),
        transfer=pl.col("point_to_point").any(),
        goes_up=pl.col("source").max() == pl.col("rank").min(),
    )
    sized = sized_calls(matched, links, ranks, limits.alike_factor)
    found = sized.join(of_calls, on=CALL).join(of_groups, on="group").filter(pl.col("transmit_ns") > 0)
    return found.with_columns(
        ranks=pl.when("transfer").then("two").otherwise("all_ranks"),
        way=pl.col("source").cast(pl.String).fill_null(""),
    )


def _slower_than_others(calls: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """Groups that are slower than comparable ones, and in which steps: `_STEP`, `score`."""
    # groups of one size may lie in one host or between several
    compared = calls.filter((pl.col("places") > 1) & pl.col("hosts").is_not_null())
    # how far its median may be off, by the scatter of its own calls
    off = (pl.col("transmit_ns").log() - pl.col("own_ns").log()).abs().median() * MAD_TO_SIGMA
    whole = compared.group_by(_PLACE).agg(
        factor=pl.col("own_ns").sum() / pl.col("median_ns").sum(),
        others=pl.col("places").max(),
        error=off * MEDIAN_ERROR / pl.len().sqrt(),
    )
    log = pl.col("factor").log()
    # Of four groups with two slow ones, the others show the noise.
    spread = pl.max_horizontal(log.abs().quantile(0.5, "lower") * MAD_TO_SIGMA, limits.floor, "error")
    of_two = pl.col("others") < limits.groups
    slow = whole.with_columns(score=pl.when(~of_two).then(log / spread)).filter(
        pl.when(of_two)
        .then((pl.col("factor") >= limits.pair_factor) & (log >= limits.score * pl.col("error")))
        .otherwise((pl.col("factor") >= limits.slowdown_factor) & (pl.col("score") >= limits.score))
    )
    by_step = compared.join(slow, on=_PLACE).group_by(*_STEP, "score", "factor")
    steps = by_step.agg(now=pl.col("transmit_ns").sum() / pl.col("median_ns").sum())
    return steps.filter(pl.col("now") > (1 + pl.col("factor")) / 2).select(*_STEP, "score")


def _slower_than_itself(calls: pl.DataFrame, least_ratio: float, limits: Limits) -> pl.DataFrame:
    """Groups that are slower in some steps (at least a share) than in the median one, more often than chance
    explains."""
    steps = calls.group_by(_STEP).agg(factor=pl.col("transmit_ns").sum() / pl.col("own_ns").sum())
    log = pl.col("factor").log()
    off = (log - log.median().over(_PLACE)).abs()
    # few steps of one group may be alike by chance
    noise = pl.max_horizontal(off.median().over(_PLACE), off.median()) * MAD_TO_SIGMA
    spread = pl.max_horizontal(noise, limits.floor)
    scored = steps.with_columns(score=(log - log.median().over(_PLACE)) / spread, count=pl.len().over(_PLACE))
    late = scored.filter(
        (pl.col("count") >= limits.all_steps)
        & (pl.col("factor") >= limits.slowdown_factor)
        & (pl.col("score") >= limits.score)
    ).with_columns(late=pl.len().over(_PLACE))
    places = scored.select(_PLACE).n_unique()
    total, every = late.height, scored.height
    chances = [
        places * chance_of_late(n, count, total - n, every - count) for n, count in late.select("late", "count").rows()
    ]
    alone = pl.lit(places == 1)
    return (
        late.with_columns(pl.Series("chance", chances, dtype=pl.Float64))
        .filter(
            (pl.col("late") >= limits.steps)
            & (pl.col("late") >= least_ratio * pl.col("count"))
            & (pl.col("late") <= limits.most_ratio * pl.col("count"))
            & (alone | (pl.col("chance") <= limits.chance))
        )
        .select(*_STEP, pl.col("score").min().over(_PLACE))
    )


def _described(rows: pl.DataFrame, late: pl.DataFrame, seen: pl.DataFrame) -> pl.DataFrame:
    """The answer, of slow calls; both directions between two ranks are one suspect."""
    lists = late.select("ranks", "step").unique().sort("ranks", "step")
    lists = lists.group_by("ranks", maintain_order=True).agg(late="step")
    every = seen.select("ranks", "step").unique().sort("step").group_by("ranks").agg(seen="step")
    lists = lists.join(every, on="ranks", maintain_order="left")
    times = [timing(all_steps, set(steps)) for all_steps, steps in lists.select("seen", "late").iter_rows()]
    when = lists.select(
        "ranks",
        suspect=pl.int_range(pl.len(), dtype=pl.Int32),
        pattern=pl.Series([one.pattern for one in times], dtype=pl.String),
        period=pl.Series([one.period for one in times], dtype=pl.Int64),
        steps=pl.col("seen").list.len().cast(pl.Int64),
    )
    return (
        rows.join(when, on="ranks")
        .with_columns(
            pl.col("score").max().over("suspect"),
            source=pl.when(pl.col("way").n_unique().over("suspect") == 1).then("source"),
            beside=pl.when("is_steady").then(pl.lit("others")).otherwise(pl.lit("steps")),
            slowdown_factor=pl.col("transmit_ns").sum().over("suspect") / pl.col("typical_ns").sum().over("suspect"),
        )
        .select(names(COLUMNS))
        .sort("suspect", "step", "sequence", "group")
    )
