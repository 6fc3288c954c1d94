"""Who waited for whom, and for whom these waited before: chains of waiting through groups of ranks."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.communication.comparable_calls import group_names
from stepscope.analysis.methods.call_positions import CALL
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.methods.step_windows import count_steps
from stepscope.analysis.rank_lists import as_rank_list
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

FOLLOWS_RATIO = 0.5
"""Share of its lateness that the last rank must have waited itself, beyond the others, to be late because of that;
chosen by us: most of it."""

_WAITED = Column("waited_ns", "int64", "Time in the median step that they waited without computing.")
_ROOT = Column(
    "root_rank", "int32", "Where the chain ends: the rank that is late without having waited for others before."
)

COLUMNS = columns(
    "rank",
    Column("for_rank", "int32", "Rank for which it waited: the last to arrive."),
    _ROOT,
    "group group_name",
    _WAITED,
    Column("mean_ns", "int64", "The same in the mean of all steps."),
    meaning("calls", "Number of calls in which it waited."),
    Column("steps_waited", "int64", "Number of steps in which it waited."),
    meaning("steps", "Number of steps of the rank."),
    nulls="group group_name",
)

CHAIN_COLUMNS = columns(
    Column("ranks", "string", "Ranks that waited, e.g. `0, 1`."),
    Column("for_rank", "int32", "Rank for which they waited: the last to arrive."),
    _ROOT,
    "group group_name",
    _WAITED,
    Column("mean_ns", "int64", "The same in the mean of all steps, of the median rank."),
    Column("longest_ns", "int64", "Time in the median step of the rank that waited longest."),
    meaning("calls", "Number of calls in which any of them waited."),
    nulls="group group_name",
    keep="ranks waited_ns for_rank root_rank group_name",
)

_CALL = list(CALL)


@analysis("job", COLUMNS, whole_job=True)
def waits(
    arrival: pl.DataFrame, activity: pl.DataFrame | None = None, groups: pl.LazyFrame | None = None
) -> pl.DataFrame:
    """Find for whom each rank waited in each group: one row per pair of ranks, group and end of the chain, in order.

    In each call, all wait for the last member to arrive. Computing meanwhile is no waiting. If this member itself
    waited in earlier calls (since the last call of this group, else in this step), beyond what the others waited, for
    most of its lateness, it is late because of the rank for which it waited longest, and so on: the rank at the end is
    the root. In a pipeline, whose stages wait for one another in turn, this may be the waiting rank itself.

    Raises:
        Unavailable: If no calls were matched, so it is unknown who was last.
    """
    known = arrival.filter((pl.col("members") > 1) & pl.col("wait_ns").is_not_null())
    if known.is_empty():
        raise Unavailable("no communication was matched between ranks, so it is unknown who waited for whom")
    calls = _waits(known, activity)
    roots = _roots(calls)
    waited = calls.join(roots, on="call").filter((pl.col("rank") != pl.col("for_rank")) & (pl.col("waited") > 0))
    keys = ["rank", "for_rank", "root_rank", "group"]
    counted = known.group_by("rank").agg(steps=count_steps().fill_null(1), has_steps=pl.col("step").count() > 0)
    in_steps = waited.join(counted, on="rank").filter(pl.col("step").is_not_null() | ~pl.col("has_steps"))
    by_step = in_steps.group_by(*keys, "step").agg(pl.col("waited").sum(), calls=pl.len().cast(pl.Int64))
    return (
        by_step.group_by(keys)
        .agg(
            lengths=pl.col("waited").sort(),
            total=pl.col("waited").sum(),
            steps_waited=pl.len().cast(pl.Int64),
            calls=pl.col("calls").sum(),
        )
        .join(counted, on="rank")
        .join(group_names(groups), on="group", how="left")
        .with_columns(waited_ns=_median(), mean_ns=rounded(pl.col("total") / pl.col("steps")))
        .select(names(COLUMNS))
        .sort("rank", -pl.col("waited_ns"), -pl.col("mean_ns"), *keys[1:], nulls_last=True)
    )


@analysis("job", CHAIN_COLUMNS, whole_job=True)
def wait_chains(waits: pl.DataFrame) -> pl.DataFrame:
    """Put the ranks together that waited for the same rank in the same group: one row each, longest wait first."""
    keys = ["for_rank", "root_rank", "group", "group_name"]
    return (
        waits.group_by(keys)
        .agg(
            ranks=as_rank_list(pl.col("rank")),
            waited_ns=rounded(pl.col("waited_ns").median()),
            mean_ns=rounded(pl.col("mean_ns").median()),
            longest_ns=pl.col("waited_ns").max(),
            calls=pl.col("calls").max(),
        )
        .select(names(CHAIN_COLUMNS))
        .sort(-pl.col("waited_ns"), -pl.col("mean_ns"), *keys, nulls_last=True)
    )


def _waits(known: pl.DataFrame, activity: pl.DataFrame | None) -> pl.DataFrame:
    """The calls of each rank that have a last member, in order of time and numbered (`place`), with the number of the
    call, its last member (`for_rank`), and the time waited without computing."""
    last = known.filter("is_last").group_by(_CALL).agg(for_rank=pl.col("rank").min(), last_ns=pl.col("start_ns").max())
    numbered = last.sort("last_ns", *_CALL, nulls_last=True).with_row_index("call")
    calls = known.join(numbered, on=_CALL, nulls_equal=True).select(
        "call",
        "rank",
        "group",
        "last_ns",
        "for_rank",
        "wait_ns",
        "step",
        pl.col("call").cast(pl.Int64).alias("number"),
        at_ns=pl.col("start_ns") + pl.col("offset_ns"),
    )
    ordered = calls.sort("rank", "at_ns", "number").with_columns(place=pl.int_range(pl.len()).over("rank"))
    computed = _computed(ordered, activity)
    return ordered.with_columns(waited=(pl.col("wait_ns") - computed).clip(lower_bound=0)).drop("number", "at_ns")


def _computed(calls: pl.DataFrame, activity: pl.DataFrame | None) -> pl.Series:
    """How long each rank computed while it waited."""
    if activity is None:
        return pl.repeat(0, calls.height, dtype=pl.Int64, eager=True)
    busy = activity.filter(pl.col("what") == "computing").select("rank", "start_ns", "end_ns").sort("start_ns")
    length = pl.col("end_ns") - pl.col("start_ns")
    busy = busy.with_columns(before=length.cum_sum().over("rank") - length, length=length)

    def until(moment: pl.Expr) -> pl.Series:
        asked = calls.select("rank", start_ns=moment).with_row_index("row").sort("start_ns")
        found = asked.join_asof(
            busy.with_columns(since="start_ns"), on="start_ns", by="rank", check_sortedness=False
        ).sort("row")
        inside = pl.min_horizontal(pl.col("start_ns") - pl.col("since"), "length")
        return found.select((pl.col("before") + inside).fill_null(0)).to_series()

    computed: pl.Series = until(pl.col("at_ns") + pl.col("wait_ns")) - until(pl.col("at_ns"))
    return computed


def _roots(calls: pl.DataFrame) -> pl.DataFrame:
    """The end of the chain of each call: `call`, `root_rank`."""
    total = pl.col("waited").cum_sum().over("rank")
    rows = calls.with_columns(before=total - pl.col("waited"), total=total)
    member, in_step = ["rank", "group"], ["rank", "step"]
    # since the last call of the group, after which its members went on together; or, if they compute meanwhile and do
    # not wait for its end, since the step began
    rows = rows.with_columns(
        recent=pl.col("before") - pl.col("total").shift(1, fill_value=0).over(member),
        recent_since=pl.col("place").shift(1, fill_value=-1).over(member),
        long=pl.col("before") - pl.col("before").first().over(in_step),
        long_since=pl.col("place").first().over(in_step) - 1,
    )
    is_last = pl.col("rank") == pl.col("for_rank")
    of_call = rows.group_by("call").agg(
        late=pl.col("wait_ns").filter(~is_last).median(),
        usual_recent=pl.col("recent").filter(~is_last).median(),
        usual_long=pl.col("long").filter(~is_last).median(),
    )
    enough = FOLLOWS_RATIO * pl.col("late")
    is_recent, is_long = (
        (extra > 0) & (extra >= enough)
        for extra in (pl.col(which) - pl.col(f"usual_{which}") for which in ("recent", "long"))
    )
    since = pl.when(is_recent).then("recent_since").when(is_long).then("long_since")
    lasts = rows.filter(is_last).join(of_call, on="call").with_columns(since=since)
    follows = lasts.filter(pl.col("since").is_not_null())
    before = _waited_before(follows, rows)
    every = rows.group_by("call").agg(pl.col("for_rank").first()).sort("call")
    # calls are numbered without gaps, in the order in which they could begin, so chains end
    above = every.join(before, on="call", how="left", maintain_order="left")
    root = above.select(pl.coalesce("via", "call").cast(pl.Int64)).to_series()
    while not (further := root.gather(root)).equals(root):
        root = further
    return every.select("call", root_rank=every["for_rank"].gather(root))


def _waited_before(follows: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """The earlier call in which each call's last member waited for the rank that delayed it most: `call`, `via`."""
    # only calls in which the rank waited: `nth` numbers these
    is_wait = (rows["waited"] > 0) & (rows["rank"] != rows["for_rank"])
    counted = rows.select("rank", "place", nth=is_wait.cast(pl.Int64)).with_columns(
        pl.col("nth").cum_sum().over("rank")
    )
    earlier = rows.filter(is_wait).select("rank", "waited", "for_rank", via="call")
    earlier = earlier.with_columns(nth=pl.int_range(1, pl.len() + 1).over("rank"))
    first = counted.select("rank", since="place", first="nth")
    asked = (
        follows.select("call", "rank", "since", "place")
        .join(counted.with_columns(place=pl.col("place") + 1, until="nth").drop("nth"), on=["rank", "place"])
        .join(first, on=["rank", "since"], how="left")
        .select("call", "rank", nth=pl.int_ranges(pl.col("first").fill_null(0) + 1, pl.col("until") + 1))
        .explode("nth")
        .drop_nulls("nth")
    )
    found = asked.join(earlier, on=["rank", "nth"]).filter(pl.col("via") < pl.col("call"))
    most = found.with_columns(whole=pl.col("waited").sum().over("call", "for_rank"))
    order = most.sort("call", "whole", "for_rank", "waited", "via", descending=[False, True, False, True, False])
    return order.unique("call", keep="first", maintain_order=True).select("call", "via")


def _median() -> pl.Expr:
    """The median of the steps' sums (`lengths`, in order), of which those without any are not listed."""
    zeros = pl.col("steps") - pl.col("lengths").list.len()
    lower, upper = ((pl.col("steps") - 1) // 2 - zeros, pl.col("steps") // 2 - zeros)
    values = [
        pl.when(place >= 0).then(pl.col("lengths").list.get(place.clip(lower_bound=0), null_on_oob=True)).otherwise(0)
        for place in (lower, upper)
    ]
    return rounded((values[0] + values[1]) / 2)
