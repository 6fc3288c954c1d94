"""Which host calls take a rank more time than its peers, and whether all of them do, a few, or one long stall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.host.host_calls import WHAT
from stepscope.analysis.methods.peers import peers, typical
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables.base import Column, schema_of

CLASS = ["what", "name"]
PATTERNS = ("every_call", "calls", "stall", "none")
"""Calls of framework and driver take longer by about one factor, so the host itself is slow; some calls take the time;
most of it is one long call; no call takes noticeably longer."""

OF_HOST_SPEED = ("operator", "launch", "runtime")
"""Calls whose time shows how fast the host is."""

MOST_NAMED = 3

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Limits:
    """When host calls count as the cause of a rank's extra time."""

    least_ns: int = limit(50_000, "ns in a step, beyond the peers'", "chosen by us: less than ten launches")
    factor: float = limit(1.15, "times the peers' time for the same calls", "chosen by us: above the noise of hosts")
    alike_ratio: float = limit(
        0.5, "of the logarithm of the factor of all", "chosen by us: calls this close are equally slow"
    )
    alike_share_ratio: float = limit(0.6, "of the time", "chosen by us: in calls that are equally slow")
    alike_calls: int = limit(3, "different calls", "chosen by us: fewer do not show that the host is slow")
    named_ratio: float = limit(0.8, "of the excess", "chosen by us: what is named explains most of it")
    more_calls: float = limit(1.5, "times the peers' calls", "waiting is longer on any rank that waits for another one")
    stall_ratio: float = limit(0.5, "of the excess of all steps", "chosen by us: most of it is one call")


LIMITS = Limits()

COLUMNS = columns(
    "rank",
    Column("what", "string", "What the calls are for.", values=WHAT),
    meaning("name", "Name of the call, without numbers of steps and addresses."),
    Column("peers", "int32", "Number of other ranks that make this call."),
    Column("calls", "float64", "Calls in a step."),
    Column("typical_calls", "float64", "Calls in a step on the median peer."),
    meaning("total_ns", "Time in a step, outside of the calls inside."),
    Column("typical_ns", "int64", "Time in a step on the median peer."),
    meaning("mean_ns", "Mean time of a call."),
    Column("typical_mean_ns", "int64", "Mean time of a call on the median peer; null without peers."),
    Column("excess_ns", "int64", "Time in a step beyond the median peer's."),
    Column("longest_ns", "int64", "The longest call."),
    Column("longest_step", "int32", "Step of the longest call."),
    Column("place", "string", "Python function that made the longest call, with file and line; null if not recorded."),
    meaning("steps", "Number of recorded steps of the rank."),
    nulls="typical_mean_ns place",
    keep="name excess_ns what calls total_ns place",
)

PATTERN_COLUMNS = columns(
    "rank",
    Column("pattern", "string", "What its extra host time consists of.", values=PATTERNS),
    Column(
        "what",
        "string",
        "What the named calls are for, or those of which the factor is; null if there are none.",
        values=WHAT,
    ),
    Column("names", "list[string]", "The calls that explain most of it, largest first."),
    Column("place", "string", "Python function that made the first of them; null if not recorded."),
    Column("factor", "float64", "How many times as long as on the peers every call takes; null for other patterns."),
    Column("calls", "float64", "Calls of the named ones in a step."),
    Column("typical_calls", "float64", "The same on the median peer."),
    Column("named_ns", "int64", "Time of the named calls in a step beyond the median peer's."),
    Column("excess_ns", "int64", "Time of all longer calls in a step beyond the median peer's."),
    Column("longest_ns", "int64", "The longest of the named calls; null if there are none."),
    Column("longest_step", "int32", "Step of the longest; null if there are none."),
    nulls="what place factor longest_ns longest_step",
)


@analysis("job", COLUMNS, whole_job=True)
def rank_host_calls(host_calls: pl.DataFrame) -> pl.DataFrame:
    """Compare the time that each rank's host spends in each call with the ranks that make the same call.

    Returns:
        One row per rank and call that take longer than on the median peer, rank by rank, largest excess first.
        Communication is left out, as it waits for others.

    Raises:
        Unavailable: If only one rank was recorded.
    """
    if host_calls["rank"].n_unique() < 2:
        raise Unavailable("host calls of ranks can be compared with at least two ranks of one job")
    return compared_calls(host_calls).filter(pl.col("excess_ns") > 0)


@analysis("job", PATTERN_COLUMNS, whole_job=True)
def host_patterns(host_calls: pl.DataFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Summarise what each rank's extra host time consists of: one row per rank.

    Raises:
        Unavailable: If only one rank was recorded.
    """
    if host_calls["rank"].n_unique() < 2:
        raise Unavailable("host calls of ranks can be compared with at least two ranks of one job")
    return host_patterns_of(compared_calls(host_calls), limits)


def compared_calls(calls: pl.DataFrame, slow: Sequence[int] = ()) -> pl.DataFrame:
    """`rank_host_calls` against the ranks that are not slow, with calls that take less as well.

    Args:
        calls: As `host_calls`.
        slow: Ranks that are no example for others. Default: each rank is compared with the median rank.
    """
    each = calls.filter(pl.col("what") != "communication").with_columns(
        (pl.col(name) / pl.col("steps")).alias(name) for name in ("calls", "total_ns")
    )
    rows = each.with_columns(mean=pl.col("total_ns") / pl.col("calls"), peers=peers(slow, CLASS)).with_columns(
        typical_calls=typical("calls", slow, CLASS).fill_null(0.0),
        typical=typical("total_ns", slow, CLASS).fill_null(0.0),
        usual=typical("mean", slow, CLASS),
    )
    # a call that few peers make takes the typical one no time
    ranks = each.filter(~pl.col("rank").is_in(list(slow)))["rank"].n_unique()
    rare = 2 * pl.col("peers") < ranks - pl.col("rank").is_in(list(slow)).not_().cast(pl.Int32)
    return (
        rows.with_columns(
            pl.col("peers").cast(pl.Int32),
            typical_calls=pl.when(rare).then(0.0).otherwise("typical_calls"),
            typical=pl.when(rare).then(0.0).otherwise("typical"),
        )
        .with_columns(
            typical_ns=rounded(pl.col("typical")),
            excess_ns=rounded(pl.col("total_ns") - pl.col("typical")),
            total_ns=rounded(pl.col("total_ns")),
            mean_ns=rounded(pl.col("mean")),
            typical_mean_ns=rounded(pl.col("usual")),
        )
        .select(names(COLUMNS))
        .sort("rank", -pl.col("excess_ns"), *CLASS)
    )


def host_patterns_of(rows: pl.DataFrame, limits: Limits = LIMITS, what: Sequence[str] = WHAT) -> pl.DataFrame:
    """`host_patterns` of rows as of `compared_calls`, from calls for some purposes only."""
    parts = rows.filter(pl.col("what").is_in(list(what))).partition_by("rank", as_dict=True, maintain_order=True)
    ranks = sorted(rows["rank"].unique())
    found = [(rank, *_pattern(parts[rank,].rows(named=True) if (rank,) in parts else [], limits)) for rank in ranks]
    return pl.DataFrame(found, schema=schema_of(PATTERN_COLUMNS), orient="row")


def _pattern(calls: Sequence[Row], limits: Limits) -> tuple[Any, ...]:
    """The columns from `pattern` on."""
    longer = [row for row in calls if row["excess_ns"] > 0 and _explains(row, limits)]
    excess = sum(row["excess_ns"] for row in longer)
    if excess < limits.least_ns:
        return ("none", None, [], None, None, 0.0, 0.0, 0, excess, None, None)
    timed = [row for row in calls if row["what"] in OF_HOST_SPEED and row["peers"]]
    slower = sum(row["excess_ns"] for row in timed)
    if 2 * slower >= excess:
        for what in OF_HOST_SPEED:
            own = [row for row in timed if row["what"] == what]
            if (factor := _one_factor(own, limits)) is not None:
                return ("every_call", what, [], None, factor, *_counts(own), slower, excess, None, None)
    purposes: dict[str, int] = {}
    for row in longer:
        purposes[row["what"]] = purposes.get(row["what"], 0) + row["excess_ns"]
    first = max(purposes, key=lambda what: (purposes[what], what))
    if first == "outside" and (waits := _extra_waits(calls, limits)):
        # Its device has nothing to do after each wait, so what it does then counts, not how long it waited.
        time, place = purposes[first], waits[0]["place"]
        names_ = [row["name"] for row in waits[:MOST_NAMED]]
        return ("calls", "synchronisation", names_, place, None, *_counts(waits[:1]), time, excess, None, None)
    named = _named([row for row in longer if row["what"] == first], limits)
    time = sum(row["excess_ns"] for row in named)
    longest = max(named, key=lambda row: row["longest_ns"])
    steps = named[0]["steps"]
    is_stall = steps > 1 and longest["longest_ns"] >= limits.stall_ratio * excess * steps
    return (
        *("stall" if is_stall else "calls", first, list(dict.fromkeys(row["name"] for row in named))),
        *((longest if is_stall else named[0])["place"], None, *_counts(named)),
        *(time, excess, longest["longest_ns"], longest["longest_step"]),
    )


def _explains(row: Row, limits: Limits) -> bool:
    """Whether a longer call delays the rank: waiting for the device does only if it waits more often than others."""
    return bool(row["what"] != "synchronisation" or _is_more_often(row, limits))


def _is_more_often(row: Row, limits: Limits) -> bool:
    calls, usual = row["calls"], row["typical_calls"]
    return bool(calls >= limits.more_calls * usual and calls > usual + 0.5)


def _extra_waits(calls: Sequence[Row], limits: Limits) -> list[Row]:
    """Waits for the device that the peers do not have, the most frequent first."""
    waits = [row for row in calls if row["what"] == "synchronisation" and _is_more_often(row, limits)]
    return sorted(waits, key=lambda row: (row["typical_calls"] - row["calls"], -row["excess_ns"], row["name"]))


def _one_factor(calls: Sequence[Row], limits: Limits) -> float | None:
    """The factor by which calls of framework and driver take longer; None if they differ, or take as long."""
    usual = {row["name"]: row["calls"] * row["typical_mean_ns"] for row in calls}
    total = sum(row["total_ns"] for row in calls)
    if len(calls) < limits.alike_calls or not sum(usual.values()):
        return None
    factor: float = total / sum(usual.values())
    if factor < limits.factor:
        return None
    near = limits.alike_ratio * log(factor)
    alike = [
        row
        for row in calls
        if usual[row["name"]] and abs(log(max(row["total_ns"], 1) / usual[row["name"]] / factor)) <= near
    ]
    share = sum(row["total_ns"] for row in alike)
    return factor if len(alike) >= limits.alike_calls and share >= limits.alike_share_ratio * total else None


def _named(calls: Sequence[Row], limits: Limits) -> list[Row]:
    """The calls that explain most of the excess, at most `MOST_NAMED`."""
    whole, found = sum(row["excess_ns"] for row in calls), 0
    for place, row in enumerate(calls[:MOST_NAMED]):
        found += row["excess_ns"]
        if found >= limits.named_ratio * whole:
            return list(calls[: place + 1])
    return list(calls[:MOST_NAMED])


def _counts(calls: Sequence[Row]) -> tuple[float, float]:
    """Calls in a step, and those of the median peer."""
    return sum(row["calls"] for row in calls), sum(row["typical_calls"] for row in calls)
