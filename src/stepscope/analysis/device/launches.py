"""How the host launches device work: how long its calls take, how long work waits after them, and which work is shorter
than the call that launches it."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.launch_owners import owners
from stepscope.analysis.methods.names import unnumbered
from stepscope.analysis.methods.statistics import duration_statistics, rounded
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column

NO_LAUNCHES = "no launches of device work were recorded"


@dataclass(frozen=True)
class Limits:
    """Which launches stand out."""

    call_ns: float = limit(50e3, "ns, of one call that launches", "HTA's limit for calls")
    delay_ns: float = limit(100e3, "ns, from the end of the call to the start of its work", "HTA's limit for delays")


LIMITS = Limits()

CALL = (pl.col("launch_end_ns") - pl.col("launch_start_ns")).clip(lower_bound=0)
"""How long the host's call takes."""

DELAY = (pl.col("start_ns") - pl.col("launch_end_ns")).clip(lower_bound=0)
"""From the end of the call to the start of the work; 0 if it starts before the call ends."""

_COUNTS = (
    Column("count", "int64", "Pieces of device work with a known launch.", importance=61),
    Column("short", "int64", "Pieces that take less time than the host needs to launch them.", importance=58),
    Column("short_ratio", "float64", "Share of `count`.", importance=57),
    Column("long_calls", "int64", "Pieces launched by a call beyond the limit.", title="long calls", importance=50),
    Column("long_delays", "int64", "Pieces that start later than the limit after it.", title="long delays"),
)


def launched(kernels: pl.LazyFrame, *more: str) -> pl.LazyFrame:
    """Device work with a known launch: `rank`, `kind`, more columns, `call_ns` (the part of the call that is its own),
    `delay_ns`, `duration_ns`.

    A call may launch many kernels at once (a graph): each has an equal part of it.
    """
    known = kernels.filter(pl.col("launch_start_ns").is_not_null() & pl.col("launch_end_ns").is_not_null())
    ids = known.filter(pl.col("correlation").is_not_null()).group_by("rank", "correlation").agg(parts=pl.len())
    shared = ids.filter(pl.col("parts") > 1).collect(engine="streaming")
    call = CALL
    if shared.height:
        known = known.join(shared.lazy(), on=["rank", "correlation"], how="left", maintain_order="left")
        call = (CALL / pl.col("parts").fill_null(1)).round().cast(pl.Int64)
    return known.select("rank", "kind", *more, "duration_ns", call_ns=call, delay_ns=DELAY)


def _counted(limits: Limits) -> list[pl.Expr]:
    return [
        pl.len().cast(pl.Int64).alias("count"),
        (pl.col("duration_ns") < pl.col("call_ns")).sum().cast(pl.Int64).alias("short"),
        (pl.col("duration_ns") < pl.col("call_ns")).mean().alias("short_ratio"),
        (pl.col("call_ns") > limits.call_ns).sum().cast(pl.Int64).alias("long_calls"),
        (pl.col("delay_ns") > limits.delay_ns).sum().cast(pl.Int64).alias("long_delays"),
    ]


_SPREAD = {"mean": "Mean", "median": "Median", "p95": "95th percentile (observed) of the", "max": "Longest"}
"""What is told of times, in words."""


def _spread(name: str, what: str, importance: int) -> tuple[Column, ...]:
    return tuple(
        Column(f"{name}_{which}_ns", "int64", f"{word} {what}.", importance=importance - place)
        for place, (which, word) in enumerate(_SPREAD.items())
    )


def _spread_of(column: str) -> list[pl.Expr]:
    statistics = {one.meta.output_name(): one for one in duration_statistics(column)}
    name = column.removesuffix("_ns")
    return [statistics[f"{which}_ns"].alias(f"{name}_{which}_ns") for which in _SPREAD]


@analysis(
    "rank",
    columns(
        "rank kind",
        *_COUNTS,
        *_spread("call", "time of the host's call for a piece", 49),
        *_spread("delay", "time from the end of the call to the start of the work", 55),
        *_spread("duration", "duration of the work", 45),
        nulls="",
    ),
    together=True,
    nothing=NO_LAUNCHES,
)
def launch_summary(kernels: pl.LazyFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Sum up launches: one row per rank and kind of device work, in order.

    Args:
        kernels: Device work.
        limits: Which launches stand out.
    """
    spreads = [one for name in ("call_ns", "delay_ns", "duration_ns") for one in _spread_of(name)]
    sums = launched(kernels).group_by("rank", "kind").agg(*_counted(limits), *spreads)
    return sums.sort("rank", "kind").collect()


@analysis(
    "rank",
    columns(
        "rank kind",
        meaning("name", "Name of the kernel."),
        *_COUNTS,
        Column("call_ns", "int64", "Time of the calls that launch it.", title="calls", importance=56),
        Column("call_mean_ns", "int64", "Mean time of a call.", importance=44),
        Column("call_max_ns", "int64", "Longest call.", importance=30),
        Column("delay_mean_ns", "int64", "Mean time from the end of the call to its start.", importance=55),
        Column("delay_max_ns", "int64", "Longest such time.", importance=30),
        Column("total_ns", "int64", "Time that the kernel runs.", importance=54),
        Column("mean_ns", "int64", "Mean duration of the kernel.", importance=53),
        nulls="",
        keep="name",
    ),
    together=True,
    nothing=NO_LAUNCHES,
)
def kernel_launches(kernels: pl.LazyFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Sum up launches by kernel, the longest total time of calls first.

    Args:
        kernels: Device work.
        limits: Which launches stand out.
    """
    keys = ["rank", "kind", "name"]
    sums = launched(kernels, "name").with_columns(unnumbered()).group_by(keys).agg(
        *_counted(limits),
        call_ns=pl.col("call_ns").sum(),
        call_mean_ns=rounded(pl.col("call_ns").mean()),
        call_max_ns=pl.col("call_ns").max(),
        delay_mean_ns=rounded(pl.col("delay_ns").mean()),
        delay_max_ns=pl.col("delay_ns").max(),
        total_ns=pl.col("duration_ns").sum(),
        mean_ns=rounded(pl.col("duration_ns").mean()),
    )  # fmt: skip
    return sums.collect(engine="streaming").sort("rank", -pl.col("call_ns"), "kind", "name")


_OUTLIERS = columns(
    "rank",
    Column("what", "string", "What is long: the host's `call`, or the `delay` from its end.", values=("call", "delay")),
    Column("call_ns", "int64", "Time of the call for this piece of work.", importance=58),
    Column("delay_ns", "int64", "From the end of the call to the start of the work.", importance=57),
    meaning("name", "Name of the kernel."),
    Column("operator", "string", "Operator that launched it; null if not known.", importance=55),
    meaning("duration_ns", "Duration of the work."),
    "step",
    Column("launch_start_ns", "int64", "Start of the call.", moment=True),
    "start_ns kind stream",
    Column("correlation", "int64", "Id that the call shares with its work; null if not recorded.", importance=10),
    nulls="operator step stream correlation",
    keep="name",
)
_KEPT = ("step", "launch_start_ns", "start_ns", "stream", "correlation")


@analysis("rank", _OUTLIERS, together=True)
def launch_outliers(
    kernels: pl.LazyFrame,
    operators: pl.LazyFrame | None,
    slices: pl.LazyFrame | None,
    limits: Limits = LIMITS,
    limit: int = 50,
) -> pl.DataFrame:
    """Find launches beyond the limits: the longest calls and the longest delays of each rank, longest first.

    Args:
        kernels: Device work.
        operators: Operators, to name those that launched it.
        slices: Ranges of the host, among them the calls that launch.
        limits: From which time on a call or a delay is long.
        limit: Calls and delays to find on each rank.
    """
    rows = launched(kernels, "kernel", "name", *_KEPT)
    found: dict[str, pl.DataFrame] = {}
    for batch in batches(rows):
        for what, least in (("call", limits.call_ns), ("delay", limits.delay_ns)):
            long = batch.filter(pl.col(f"{what}_ns") > least)
            every = pl.concat([found[what], long]) if what in found else long
            found[what] = every.sort("rank", -pl.col(f"{what}_ns"), "launch_start_ns", "start_ns", maintain_order=True)
            found[what] = found[what].group_by("rank", maintain_order=True).head(limit)
    listed = pl.concat(found[what].with_columns(what=pl.lit(what)) for what in sorted(found))
    named = _operators(listed, kernels, operators, slices)
    return listed.join(named, on=["rank", "kernel"], how="left", maintain_order="left").select(
        column.name for column in _OUTLIERS
    )


def _operators(
    listed: pl.DataFrame, kernels: pl.LazyFrame, operators: pl.LazyFrame | None, slices: pl.LazyFrame | None
) -> pl.DataFrame:
    """The operators that launched some kernels: `rank`, `kernel`, `operator`."""
    keys = ["rank", "kernel"]
    if operators is None:
        return listed.select(*keys, operator=pl.lit(None, pl.String)).head(0)
    owned = owners(kernels.join(listed.lazy().select(keys).unique(), on=keys, how="semi"), operators, slices)
    named = operators.select("rank", "slice", operator="name").join(owned.lazy(), on=["rank", "slice"])
    return named.select(*keys, "operator").unique(keys, keep="first", maintain_order=True).collect()
