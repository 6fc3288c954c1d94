"""How much of each communication call no computing covers, waiting and transmission apart, and which calls end it."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.intervals import covered, union
from stepscope.analysis.methods.ordering import in_order
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.limits import limit
from stepscope.tables import KERNELS
from stepscope.tables.base import Column


@dataclass(frozen=True)
class Limits:
    """When a call follows another one."""

    follow_ns: int = limit(20_000, "ns", "what starting a call that was queued behind another one takes")


COLUMNS = columns(
    "rank step group",
    Column("sequence", "int64", "Position of the call in its group, as in `arrival`."),
    "operation",
    Column("collective", "int64", "Number of the row in `collectives`."),
    meaning("start_ns", "When the rank entered the call, on its own clock."),
    meaning("end_ns", "When the rank left the call, on its own clock."),
    Column("chain", "int64", "Number in rank and group: calls of one chain follow each other without a gap."),
    Column("sent_ns", "int64", "All of its transmission, covered or not; null if unknown."),
    Column("wait_ns", "int64", "Waiting for the last rank to enter that no computing covers; null if unknown."),
    Column("transmit_ns", "int64", "Transmission that no computing covers; null if unknown."),
    Column("unsplit_ns", "int64", "The whole call's time that no computing covers if waiting is unknown, else 0."),
    Column(
        "awaited_ns",
        "int64",
        "How long the rank has computed nothing when the call ends, at most since its chain began to transmit; 0 if it "
        "is computing then, or computes only after a later call.",
    ),
    Column(
        "slack_ns",
        "int64",
        "How much sooner it could have begun, had the call before it ended sooner: since all computing launched before "
        "it has ended; null if launches are unknown.",
    ),
    nulls="step group sent_ns wait_ns transmit_ns slack_ns",
)


@analysis("rank", COLUMNS, together=True)
def exposed_calls(
    arrival: pl.DataFrame,
    activity: pl.DataFrame,
    steps: pl.LazyFrame,
    kernels: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Cut each call at the last arrival and count what of both parts runs while the rank computes nothing.

    Calls that run at the same time are each counted in full. If a call that is awaited ended sooner, computing would go
    on sooner, by up to `awaited_ns`; so it would if calls ended sooner behind which it was queued (`chain`), by up to
    `slack_ns`.

    Returns:
        One row per rank and call.
    """
    own = arrival.filter(pl.col("rank").is_in(ranks_of(steps)))
    start, length = pl.col("start_ns") + pl.col("offset_ns"), pl.col("end_ns") - pl.col("start_ns")
    waiting = pl.col("wait_ns").fill_null(0).clip(0, length)
    calls = own.with_columns(
        known=pl.col("wait_ns").is_not_null(), sent_ns="transmit_ns", turn_ns=start + waiting
    ).with_columns(start_ns=start, end_ns=start + length)
    calls = in_order(calls, "rank", "group", "start_ns", "end_ns", "collective").with_row_index("row")
    of_group = ["rank", "group"]
    follows = pl.col("start_ns") - pl.col("end_ns").cum_max().shift(1).over(of_group) <= limits.follow_ns
    calls = calls.with_columns(chain=(~follows).fill_null(value=False).cum_sum().over(of_group).cast(pl.Int64))
    busy = union(activity.filter(pl.col("what") == "computing").select("rank", "start_ns", "end_ns"), ["rank"])
    points = ("start_ns", "turn_ns", "end_ns")
    first, turn, last = (covered(calls.select("rank", "row", at=at), busy) for at in points)
    before, after = (
        calls["turn_ns"] - calls["start_ns"] - (turn - first),
        calls["end_ns"] - calls["turn_ns"] - (last - turn),
    )
    return calls.with_columns(
        wait_ns=pl.when("known").then(before),
        transmit_ns=pl.when("known").then(after),
        unsplit_ns=pl.when("known").then(0).otherwise(before + after),
        awaited_ns=_awaited(calls, busy),
        slack_ns=_slack(calls, KERNELS.or_empty(kernels)),
    ).select(names(COLUMNS))


def _awaited(calls: pl.DataFrame, busy: pl.DataFrame) -> pl.Series:
    """`awaited_ns` of each call, in order of `row`."""
    gaps = busy.select("rank", since_ns="end_ns", at="start_ns").sort("at").with_row_index("gap")
    begun = pl.col("turn_ns").min().over("rank", "group", "chain")
    ends = calls.select("rank", "row", begun_ns=begun, at="end_ns").sort("at", "row")
    found = ends.join_asof(gaps, on="at", by="rank", check_sortedness=False, allow_exact_matches=False)
    idle = (pl.col("since_ns") < pl.col("at")).fill_null(value=True)
    ends_it = idle & (pl.col("at") == pl.col("at").filter(idle).max().over("rank", "gap"))
    length = pl.col("at") - pl.max_horizontal("since_ns", "begun_ns")
    return found.select("row", awaited=pl.when(ends_it).then(length).otherwise(0)).sort("row")["awaited"]


def _slack(calls: pl.DataFrame, kernels: pl.LazyFrame) -> pl.Series:
    """`slack_ns` of each call, in order of `row`."""
    launched = kernels.filter(pl.col("launch_start_ns").is_not_null())
    is_call = pl.col("kind") == "communication"
    work, starts = pl.collect_all(
        [
            launched.filter(pl.col("kind") == "compute").select(
                "rank", at="launch_start_ns", until=pl.col("start_ns") + pl.col("duration_ns")
            ),
            launched.filter(is_call)
            .select("rank", "start_ns", at="launch_start_ns")
            .unique(["rank", "start_ns"], keep="first", maintain_order=True),
        ]
    )
    done = work.sort("at").with_columns(pl.col("until").cum_max().over("rank"))
    asked = calls.select("rank", "row", "start_ns").join(starts, on=["rank", "start_ns"]).sort("at", "row")
    found = asked.join_asof(done, on="at", by="rank", check_sortedness=False)
    ready = pl.max_horizontal("until", "at")
    known = found.select("row", slack=(pl.col("start_ns") - ready).clip(lower_bound=0))
    return calls.select("row").join(known, on="row", how="left", maintain_order="left")["slack"]


def gained_ns(calls: pl.DataFrame, excess: str) -> pl.DataFrame:
    """What computing gains if calls are shorter, by rank, step and group (`gained`).

    A call hands what it gains on to the call queued behind it, as far as that could have begun sooner.

    Args:
        calls: Rows of `exposed_calls` with a column of what each could be shorter.
        excess: That column.
    """
    chain = ["rank", "step", "group", "chain"]
    ordered = in_order(calls, "rank", "group", "start_ns", "end_ns", "collective", nulls_last=True)
    ordered = ordered.with_columns(link=pl.struct(chain).rank("dense")).with_row_index("place")
    is_queued = ~ordered["link"].is_unique()
    gain = pl.min_horizontal(pl.col(excess), "awaited_ns")
    gained = pl.concat([ordered.filter(~is_queued).with_columns(gain=gain), _queued(ordered.filter(is_queued), excess)])
    gains = (
        gained.sort("place")
        .group_by("link", maintain_order=True)
        .agg(pl.col(chain).first(), pl.col("gain").sum(), pl.col(excess).sum())
        .with_columns(gained=pl.min_horizontal("gain", excess))
    )
    return gains.group_by("rank", "step", "group").agg(pl.col("gained").sum())


def _queued(calls: pl.DataFrame, excess: str) -> pl.DataFrame:
    """Calls of chains (`link`), in order, with what computing gains if each is shorter (`gain`)."""
    upto = pl.col("upto")
    first = pl.int_range(pl.len()).over("link") == 0
    given = pl.when(first).then(0).otherwise(pl.col("slack_ns").fill_null(0))
    sooner = upto + (given - (upto - pl.col(excess))).cum_min().over("link")
    counted = calls.with_columns(pl.col(excess).cum_sum().over("link").alias("upto"))
    return counted.with_columns(gain=pl.min_horizontal(sooner, "awaited_ns")).drop("upto")
