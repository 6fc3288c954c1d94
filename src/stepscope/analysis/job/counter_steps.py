"""The level of each sampled counter in each step: clocks, power, temperature, rates."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.step_windows import known_steps
from stepscope.analysis.registry import analysis, ranks_of, without_rows
from stepscope.errors import Unavailable
from stepscope.tables import RANKS
from stepscope.tables.base import Column

ROLES = {
    "clock": r"(frequency|clock)_mhz$",
    "power": r"power.*_w$|^power_w$",
    "temperature": r"temperature.*_c$",
    "throttle": r"(?i)throttl",
}
"""What counters are, by their names, if they show how fast a device may run."""

OF_SPEED = (*ROLES, "rate")

NO_COUNTERS = "no counters of the device were sampled"

COLUMNS = columns(
    "rank",
    Column("name", "string", "Counter with its unit, e.g. `ai_core_frequency_mhz`."),
    Column("role", "string", "What it shows.", values=OF_SPEED),
    "step",
    Column("mean", "float64", "Mean over the step, in the counter's unit; a sample holds until the next."),
    Column("busy_mean", "float64", "Mean while the rank computes; the same as `mean` if it never changes."),
    Column("least", "float64", "Lowest level in the step."),
    nulls="",
)


@analysis("rank", COLUMNS, together=True, nothing=NO_COUNTERS)
def counter_steps(
    counters: pl.LazyFrame, steps: pl.LazyFrame, activity: pl.DataFrame | None, ranks: pl.LazyFrame | None = None
) -> pl.DataFrame:
    """Average each counter over each step: one row per counter and step, in order.

    If several devices were sampled, those of the rank count, if they are known. Steps before the first sample have no
    rows.

    Raises:
        Unavailable: If nothing was sampled.
    """
    series = _series(counters, ranks)
    windows = known_steps(steps).select("rank", "step", start_ns="window_start_ns", end_ns="window_end_ns").collect()
    levels = _means(series, windows.filter(pl.col("end_ns") > pl.col("start_ns")))
    if unknown := without_rows(ranks_of(steps), levels):
        raise Unavailable(NO_COUNTERS, of=unknown)
    changing = series.filter(pl.col("value").n_unique().over("rank", "name") > 1)
    keys = ["rank", "name", "step"]
    busy = _while_busy(changing, windows, activity)
    sampled = changing.sort("time_ns").join_asof(
        windows.sort("start_ns"), left_on="time_ns", right_on="start_ns", by="rank", check_sortedness=False
    )
    lowest = sampled.filter(pl.col("time_ns") < pl.col("end_ns")).group_by(keys).agg(least=pl.col("value").min())
    named = levels.select(pl.col("name").unique())
    roles = [pl.when(pl.col("name").str.contains(words)).then(pl.lit(role)) for role, words in ROLES.items()]
    return (
        levels.join(named.with_columns(role=pl.coalesce(*roles, pl.lit("rate"))), on="name")
        .join(busy, on=keys, how="left")
        .join(lowest, on=keys, how="left")
        .with_columns(busy_mean=pl.coalesce("busy_mean", "mean"), least=pl.min_horizontal("least", "first", "mean"))
        .select(names(COLUMNS))
        .sort(keys)
    )


def own_samples(counters: pl.LazyFrame, ranks: pl.LazyFrame | None) -> pl.LazyFrame:
    """The samples of each rank's device (`rank`, `name`, `time_ns`, `value`), in order of time; if its own device is
    not known, of all that were sampled."""
    own = RANKS.or_empty(ranks).select("rank", own="device").unique("rank")
    rows = counters.join(own, on="rank", how="left").with_columns(
        is_own=(pl.col("device") == pl.col("own")).fill_null(False)
    )
    known = rows.filter(pl.col("is_own") | ~pl.col("is_own").any().over("rank", "name"))
    # samples of one moment, e.g. of several dies, are one
    return (
        known.filter(pl.col("value").is_finite())
        .group_by("rank", "name", "time_ns")
        .agg(pl.col("value").mean())
        .sort("rank", "name", "time_ns")
    )


def _series(counters: pl.LazyFrame, ranks: pl.LazyFrame | None) -> pl.DataFrame:
    """The samples of each rank's device, in order of time, with the integral of the counter up to each (`area`)."""
    held = pl.col("value") * (pl.col("time_ns").shift(-1) - pl.col("time_ns"))
    series = ["rank", "name"]
    moments = own_samples(counters, ranks)
    return moments.with_columns(area=held.shift(1).over(series).fill_null(0.0).cum_sum().over(series)).collect()


def _means(series: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """The mean of each counter in each window: `rank`, `name`, `step`, `mean`, and the level at its start (`first`)."""
    firsts = series.group_by("rank", "name").agg(since_ns=pl.col("time_ns").min())
    each = (
        windows.join(firsts, on="rank")
        .with_columns(start_ns=pl.max_horizontal("start_ns", "since_ns"))
        .filter(pl.col("end_ns") > pl.col("start_ns"))
    )
    at_start, at_end = (_area(series, each, end) for end in ("start_ns", "end_ns"))
    return (
        each.with_columns(at_start["level"].alias("first"), area=at_end["area"] - at_start["area"])
        .group_by("rank", "name", "step")
        .agg(pl.col("first").min(), mean=pl.col("area").sum() / (pl.col("end_ns") - pl.col("start_ns")).sum())
    )


def _area(series: pl.DataFrame, windows: pl.DataFrame, at: str) -> pl.DataFrame:
    """The integral of each window's counter up to a moment (`area`), and its level there."""
    asked = windows.select("rank", "name", time_ns=at).with_row_index("row").sort("time_ns")
    samples = series.rename({"time_ns": "sampled_ns"}).sort("sampled_ns")
    found = asked.join_asof(
        samples, left_on="time_ns", right_on="sampled_ns", by=["rank", "name"], check_sortedness=False
    )
    area = pl.col("area") + pl.col("value") * (pl.col("time_ns") - pl.col("sampled_ns"))
    return found.sort("row").select(area=area, level="value")


def _while_busy(series: pl.DataFrame, windows: pl.DataFrame, activity: pl.DataFrame | None) -> pl.DataFrame:
    """The mean of counters that change, in each step while the rank computes: `busy_mean`."""
    schema = {"rank": pl.Int32, "name": pl.String, "step": pl.Int32, "busy_mean": pl.Float64}
    if activity is None or series.is_empty():
        return pl.DataFrame(schema=schema)
    changing = series["rank"].unique().implode()
    busy = activity.filter((pl.col("what") == "computing") & pl.col("rank").is_in(changing))
    inside = (
        busy.sort("start_ns")
        .join_asof(
            windows.select("rank", "step", start_ns="start_ns", until_ns="end_ns").sort("start_ns"),
            on="start_ns",
            by="rank",
            check_sortedness=False,
        )
        .filter(pl.col("start_ns") < pl.col("until_ns"))
        .select("rank", "step", "start_ns", "end_ns")
    )
    return _means(series, inside).select("rank", "name", "step", busy_mean="mean")
