"""How far each rank's clock is off: collectives end on all ranks at nearly the same moment, and nothing is received
before it was sent."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.communication.arrival import CLOCK_NOISE_NS, MUTUAL
from stepscope.analysis.methods.call_positions import CALL, positions
from stepscope.analysis.methods.clock_shifts import shifts, transfers
from stepscope.analysis.methods.intervals import END
from stepscope.analysis.methods.statistics import MAD_TO_SIGMA, rounded
from stepscope.analysis.methods.transfers import as_pairs
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables import GROUPS
from stepscope.tables.base import Column
from stepscope.tables.communication import POINT_TO_POINT
from stepscope.text_columns import filled_in

MOST = 0.5
"""Share of the calls of a host from which they show something, chosen by us: most of them."""


@dataclass(frozen=True)
class Limits:
    """When a difference between end times counts as a clock offset."""

    significant_ns: int = limit(
        100_000, "ns", "smaller offsets count as synchronised; NTP in one room achieves about this"
    )
    sigmas: float = limit(3.0, "standard errors", "a smaller offset is noise")
    impossible_ns: int = limit(
        CLOCK_NOISE_NS, "ns, from the first end to the last start of a call", "as for calls that are matched"
    )
    rounds: int = limit(8, "alternations of the two medians", "connected groups settle within a few")


@analysis(
    "job",
    columns(
        "rank offset_ns",
        Column("spread_ns", "int64", "Noise of a single call's end time; null if no call was used."),
        meaning("calls", "Number of its calls used for the estimate."),
    ),
    whole_job=True,
)
def clocks(
    collectives: pl.LazyFrame,
    ranks: pl.LazyFrame,
    steps: pl.LazyFrame | None = None,
    groups: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Estimate each rank's clock offset from the job's median clock.

    A collective ends on all members at nearly the same moment, so the offset of a rank's clock is the median difference
    between its end times and the median end times of the calls. Ranks of one host share a clock and thus an offset, and
    calls within a host show nothing of it, unless their times are not since the epoch (device counters, `start_ns` of
    `ranks` is null); or most of these would have ended on some ranks before others began
    them: then several machines have the name of the host. An offset that is small or within its own noise is taken as
    0. Clocks that only sends and receives connect are taken to agree unless something would be received before it was
    sent (see `clock_shifts`).

    Returns:
        One row per rank. Subtract `offset_ns` from its times to get the common clock.
    """
    calls = (
        positions(collectives, steps)
        .filter(~pl.col("operation").is_in(POINT_TO_POINT))
        .select("rank", "operation", "start_ns", *CALL, end_ns=END, number=pl.len().over("rank", "group"))
        .filter(pl.len().over(CALL) > 1)
        .collect()
    )
    # Medians are floats, which cannot hold ns since the epoch, so count from the first end of each call.
    first = pl.col("end_ns").min().over(CALL)
    calls = calls.with_columns(pl.col("start_ns") - first, pl.col("end_ns") - first)
    is_of_host = pl.col("start_ns").is_not_null()  # else its device counts from a moment of its own
    hosts = ranks.select("rank", pl.when(is_of_host).then("host")).collect().unique("rank", keep="first")
    alone = filled_in("rank {}", pl.col("rank"))
    shared = (
        pl.when(pl.col("host").is_in(_of_several(calls.join(hosts, on="rank"), limits))).then(None).otherwise("host")
    )
    everyone = hosts.with_columns(clock=pl.coalesce(shared, alone))
    ends = calls.drop("operation", "start_ns", "number").join(everyone, on="rank")
    ends = ends.filter(pl.col("clock").n_unique().over(CALL) > 1)
    schema = {"clock": pl.String, "offset": pl.Float64, "set": pl.String}
    begun = pl.DataFrame(_connected(ends), schema=schema, orient="row").join(everyone, on="clock")
    middle = begun.with_columns(pl.col("offset") - pl.col("offset").median().over("set")).select("rank", "offset")
    ends = ends.join(middle, on="rank")
    for _ in range(limits.rounds):
        corrected = pl.col("end_ns") - pl.col("offset")
        ends = ends.with_columns(gap=pl.col("end_ns") - corrected.median().over(CALL))
        ends = ends.with_columns(offset=pl.col("gap").median().over("clock"))
    spread = (pl.col("gap") - pl.col("gap").median()).abs().median() * MAD_TO_SIGMA
    found = ends.group_by("clock").agg(offset=pl.col("gap").median(), spread=spread, calls=pl.col("sequence").len())
    noise = limits.sigmas * pl.col("spread") / pl.col("calls").sqrt()
    real = (pl.col("offset").abs() > limits.significant_ns) & (pl.col("offset").abs() > noise)
    offset = pl.when(real & (pl.len() > 1)).then(pl.col("offset")).otherwise(0.0)
    figures = found.select("clock", offset_ns=rounded(offset), spread_ns=rounded(pl.col("spread")))
    offsets = everyone.join(figures, on="clock", how="left").with_columns(pl.col("offset_ns").fill_null(0))
    sets = {clock: clock for clock in everyone["clock"]} | dict(begun.select("clock", "set").iter_rows())
    apart = _shifts(positions(collectives, steps), offsets, sets, GROUPS.or_empty(groups).collect())
    return (
        offsets.join(apart, on="clock", how="left")
        .join(ends.group_by("rank").agg(calls=pl.len()), on="rank", how="left")
        .select(
            "rank", pl.col("offset_ns") + pl.col("shift_ns").fill_null(0), "spread_ns", pl.col("calls").fill_null(0)
        )
        .sort("rank")
    )


def _shifts(calls: pl.LazyFrame, offsets: pl.DataFrame, sets: dict[str, str], groups: pl.DataFrame) -> pl.DataFrame:
    """How far sets of clocks that no collective connects are apart: `clock`, `shift_ns`."""
    schema = {"clock": pl.String, "shift_ns": pl.Int64}
    if len({*sets.values()}) < 2:
        return pl.DataFrame(schema=schema)
    sent = calls.filter(pl.col("operation").is_in(POINT_TO_POINT))
    rows = sent.select("rank", *CALL, "operation", "peer", "start_ns", end_ns=END).collect().join(offsets, on="rank")
    rows = rows.with_columns(pl.col("start_ns", "end_ns") - pl.col("offset_ns"))
    by_set = shifts(transfers(as_pairs(rows, groups)), sets)
    return pl.DataFrame([(clock, by_set[own]) for clock, own in sorted(sets.items())], schema=schema, orient="row")


def _of_several(calls: pl.DataFrame, limits: Limits) -> list[str]:
    """Hosts whose ranks cannot share a clock: calls that nobody leaves before all have come would not overlap."""
    # Of a rank that recorded fewer calls, the k-th is another one.
    as_many = pl.col("number").n_unique().over("host", "group") == 1
    within = pl.col("operation").is_in(MUTUAL) & (pl.len().over("host", *CALL) > 1)
    counted = calls.filter(as_many & within)
    late = pl.col("start_ns").max() - pl.col("end_ns").min() > limits.impossible_ns
    judged = counted.group_by("host", *CALL).agg(late=late).group_by("host").agg(pl.col("late").mean())
    return sorted(judged.filter(pl.col("late") > MOST)["host"].drop_nulls())


def _connected(ends: pl.DataFrame) -> list[tuple[str, float, str]]:
    """Clocks with offsets to begin with and the first clock of those that calls connect with them: group after group,
    those of most clocks first.

    Medians alone may never bring clocks together that have most of their calls with others.
    """
    gap = pl.col("end_ns") - pl.col("end_ns").median().over(CALL)
    seen = ends.with_columns(gap=gap).group_by("group", "clock").agg(pl.col("gap").median(), calls=pl.len())
    groups = seen.sort("clock").group_by("group").agg("clock", "gap", pl.col("calls").sum())
    size = pl.col("clock").list.len()
    order = groups.sort(size, "calls", "group", descending=[True, True, False], nulls_last=True)
    offsets: dict[str, float] = {}
    sets: dict[str, list[str]] = {}
    for clocks_, gaps in order.select("clock", "gap").iter_rows():
        base = clocks_[0]
        for clock in clocks_:
            offsets.setdefault(clock, 0.0)
            sets.setdefault(clock, [clock])
        for clock, its_gap in zip(clocks_, gaps, strict=True):
            if sets[clock] is sets[base]:
                continue
            moved = its_gap - gaps[0] - (offsets[clock] - offsets[base])
            joined = sets[base]
            for other in list(sets[clock]):
                offsets[other] += moved
                joined.append(other)
                sets[other] = joined
    return [(clock, offset, sets[clock][0]) for clock, offset in sorted(offsets.items())]
