"""The longest communication calls of each rank: for whom it waited, and what that rank did meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.communication.comparable_calls import group_names
from stepscope.analysis.methods.call_positions import CALL
from stepscope.analysis.methods.intervals import covered, union
from stepscope.analysis.methods.statistics import first_label
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.limits import limit as limited
from stepscope.tables import KERNELS, STEPS
from stepscope.tables.base import Column


@dataclass(frozen=True)
class Limits:
    """When something is the reason of a long call."""

    most_ratio: float = limited(0.5, "of the time in question", "most of it")


LIMITS = Limits()

REASONS = ("transmission", "computing", "other calls", "late launch", "idle", "unknown")

FIRST, LAST = "first_rank", "last_rank"

COLUMNS = columns(
    "rank",
    meaning("step", "Number of the step; null if not recorded."),
    meaning("name", "Name of the call."),
    "operation group group_name start_ns duration_ns",
    meaning("wait_ns", "Waiting for the last rank to enter; null if unknown."),
    meaning("transmit_ns", "Duration less `wait_ns`; null if unknown."),
    Column("last_rank", "int32", "Rank that entered the call last; null if not matched."),
    Column("first_rank", "int32", "Rank that entered it first; null if not matched."),
    Column("late_ns", "int64", "How long after the first rank the last one entered; null if not matched."),
    Column(
        "reason",
        "string",
        "Why it took so long: `transmission` took most of it; or, as most of it was waiting, what the last rank did "
        "longer than the first one since the group's call before: `computing`, `other calls` of communication, or "
        "nothing, as its host launched the call late (`late launch`) or for another reason (`idle`).",
        values=REASONS,
        importance=85,
    ),
    nulls="step group group_name wait_ns transmit_ns last_rank first_rank late_ns",
    keep="rank name duration_ns reason last_rank wait_ns first_rank step",
)

_CALL = list(CALL)


@analysis("job", COLUMNS, whole_job=True)
def longest_calls(
    arrival: pl.DataFrame,
    activity: pl.DataFrame | None = None,
    steps: pl.LazyFrame | None = None,
    kernels: pl.LazyFrame | None = None,
    groups: pl.LazyFrame | None = None,
    limit: int = 10,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Explain the `limit` longest calls of each rank, longest first.

    Why the last rank did what it did is the question of `slow_ranks`; a chain of waiting is in `waits`.

    Raises:
        Unavailable: If no calls were recorded.
    """
    if arrival.is_empty():
        raise Unavailable("no communication was recorded")
    rows = arrival.with_columns(duration_ns=pl.col("end_ns") - pl.col("start_ns"))
    own = (
        rows.sort("rank", -pl.col("duration_ns"), "start_ns", "collective")
        .group_by("rank", maintain_order=True)
        .head(limit)
        .with_row_index("row")
    )
    matched = rows.filter(pl.col("members") > 1).join(
        own.select(_CALL).unique(), on=_CALL, how="semi", nulls_equal=True
    )
    # of ranks that enter together, the lowest
    ordered = matched.sort(*_CALL, "start_ns", "rank", nulls_last=True).group_by(_CALL, maintain_order=True)
    entered = ordered.agg(
        first_rank=pl.col("rank").first(),
        first_ns=pl.col("start_ns").first(),
        last_ns=pl.col("start_ns").max(),
        last_rank=pl.col("rank").filter(pl.col("start_ns") == pl.col("start_ns").max()).first(),
    ).with_row_index("call")
    found = own.join(entered, on=_CALL, how="left", nulls_equal=True, maintain_order="left")
    is_single = pl.col("members") == 1
    late = pl.when(~is_single).then(pl.col("last_ns") - pl.col("first_ns"))
    doing = _doing(entered, rows, STEPS.or_empty(steps), activity, KERNELS.or_empty(kernels))
    return (
        found.join(doing, on="call", how="left", maintain_order="left")
        .with_columns(
            reason=_reason(limits),
            late_ns=late,
            last_rank=pl.when(~is_single).then("last_rank"),
            first_rank=pl.when(~is_single).then("first_rank"),
            start_ns=pl.col("start_ns") + pl.col("offset_ns"),
        )
        .join(group_names(groups), on="group", how="left", maintain_order="left")
        .select(names(COLUMNS))
    )


def _reason(limits: Limits) -> pl.Expr:
    """The reason of each call; unknown where waiting, or what both ranks did, is not known."""
    enough = limits.most_ratio * pl.col("late")
    waited = (pl.col("members") > 1) & (pl.col("wait_ns") > limits.most_ratio * pl.col("duration_ns"))
    late = waited & (pl.col("late") > 0)
    idle = late & (pl.col("idle") >= enough)
    return first_label(
        {
            "transmission": pl.col("transmit_ns") >= limits.most_ratio * pl.col("duration_ns"),
            "computing": late & (pl.col("computing") >= enough),
            "other calls": late & (pl.col("communication") >= enough),
            "late launch": idle & (pl.col("unlaunched") >= enough),
            "idle": idle,
        },
        otherwise="unknown",
    )


def _doing(
    entered: pl.DataFrame,
    rows: pl.DataFrame,
    steps: pl.LazyFrame,
    activity: pl.DataFrame | None,
    kernels: pl.LazyFrame,
) -> pl.DataFrame:
    """What the last rank of each call did more than the first one since the group's call before, or since the step
    began: `call`, `late`, `computing`, `communication` (without computing), `idle`, and how long after the first
    arrival it launched the call (`unlaunched`); null if unknown."""
    before = rows.sort("sequence").select(
        "rank", *_CALL, "step", "offset_ns", "start_ns", since=pl.col("end_ns").shift(1).over("rank", "group")
    )
    begun = steps.group_by("rank", "step").agg(begun_ns=pl.col("window_start_ns").min()).collect()
    ends = pl.concat(
        entered.select(
            "call", *_CALL, late=pl.col("last_ns") - pl.col("first_ns"), rank=rank, is_last=pl.lit(rank == LAST)
        )
        for rank in (FIRST, LAST)
    )
    # from here on, times are those of each rank's own clock
    spans = (
        ends.join(before, on=["rank", *_CALL], nulls_equal=True)
        .join(begun, on=["rank", "step"], how="left", nulls_equal=True)
        .with_columns(
            since=pl.coalesce(pl.col("since") + pl.col("offset_ns"), "begun_ns"),
            until=pl.col("start_ns") + pl.col("offset_ns"),
        )
        .sort("call", "is_last")
        .with_row_index("row")
    )
    nothing = pl.lit(None, pl.Int64)
    did = spans.with_columns(computing=nothing, communication=nothing)
    if activity is not None:
        known = pl.col("rank").is_in(activity["rank"].unique().to_list()) & (pl.col("since") <= pl.col("until"))
        both = activity.filter(pl.col("what").is_in(["computing", "communication"]))
        computed = _between(spans, both.filter(pl.col("what") == "computing"))
        either = _between(spans, both)
        did = spans.with_columns(computing=computed, communication=either - computed).with_columns(
            pl.when(known).then(pl.col("computing", "communication"))
        )
    parts = ["computing", "communication", "idle"]
    idle = pl.col("until") - pl.col("since") - pl.col("computing") - pl.col("communication")
    by_call = (
        did.with_columns(idle=idle)
        .group_by("call", maintain_order=True)
        .agg(
            pl.col("late").first(),
            *((pl.col(part).last() - pl.col(part).first()).alias(part) for part in parts),
            pl.col("rank", "until").last(),
            first_ns=pl.col("until").last() - pl.col("late").first(),
        )
    )
    launched = (
        kernels.filter((pl.col("kind") == "communication") & pl.col("launch_start_ns").is_not_null())
        .select("rank", "launch_start_ns", until="start_ns")
        .join(by_call.lazy().select("rank", "until").unique(), on=["rank", "until"], how="semi")
        .unique(["rank", "until"], keep="first", maintain_order=True)
        .collect()
    )
    return by_call.join(launched, on=["rank", "until"], how="left", maintain_order="left").select(
        "call", "late", *parts, unlaunched=(pl.col("launch_start_ns") - pl.col("first_ns")).clip(lower_bound=0)
    )


def _between(spans: pl.DataFrame, ranges: pl.DataFrame) -> pl.Series:
    """How long ranges of the rank last between two moments."""
    busy = union(ranges.select("rank", "start_ns", "end_ns"), ["rank"])
    until, since = (covered(spans.select("rank", "row", at=at), busy) for at in ("until", "since"))
    found: pl.Series = until - since
    return found
