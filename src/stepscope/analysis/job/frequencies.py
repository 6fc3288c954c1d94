"""At which clock rates each rank's device ran, and whether it fell below what the device is made for."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.job.counter_steps import NO_COUNTERS, ROLES, own_samples
from stepscope.analysis.methods.statistics import first_label
from stepscope.analysis.registry import analysis, ranks_of, without_rows
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables import RANKS
from stepscope.tables.base import Column


@dataclass(frozen=True)
class Limits:
    """Which clock rates are usual."""

    nominal_mhz: float = limit(0.0, "MHz; 0: as the recording states it of the device", "the device's data sheet")
    idle_mhz: float = limit(800.0, "MHz, of AI cores", "to which idle AI cores of Ascend devices fall")
    tolerance_ratio: float = limit(0.01, "of a rate, that counts as the same", "chosen by us: rates are in whole MHz")
    shown: int = limit(8, "rates that are listed", "chosen by us: more are a range")


LIMITS = Limits()

STATES = ("normal", "idle", "low")

AI_CORES = "ai_core_frequency_mhz"

NO_CLOCKS = "no clock rates of the device were sampled"

COLUMNS = columns(
    "rank",
    Column("name", "string", "Counter with its unit, e.g. `ai_core_frequency_mhz`."),
    Column("samples", "int64", "Number of samples; some sources record changes only.", importance=30),
    Column("rates_mhz", "string", "Different rates, lowest first; of many, the lowest and the highest.", title="MHz"),
    Column("lowest_mhz", "float64", "Lowest rate.", title="lowest"),
    Column("mean_mhz", "float64", "Mean over time; a sample holds until the next one.", title="mean"),
    Column("highest_mhz", "float64", "Highest rate.", title="highest"),
    Column("nominal_mhz", "float64", "What the device is made for, as recorded; null if unknown.", title="nominal"),
    Column(
        "below_ratio", "float64", "Share of the time below the nominal rate; null if that is unknown.", title="below"
    ),
    Column(
        "state",
        "string",
        "`normal`: always at the nominal rate; `idle`: it also falls to that of idle cores; `low`: it ran at other, "
        "lower rates, e.g. for heat or a power cap. Null if the nominal rate is unknown.",
        values=STATES,
        importance=85,
    ),
    nulls="nominal_mhz below_ratio state",
    keep="rank name rates_mhz state below_ratio mean_mhz nominal_mhz",
)


@analysis("rank", COLUMNS, together=True, nothing=NO_CLOCKS)
def frequencies(counters: pl.LazyFrame, ranks: pl.LazyFrame | None = None, limits: Limits = LIMITS) -> pl.DataFrame:
    """Sum up the sampled clock rates of each rank's device: one row per counter, in order.

    Raises:
        Unavailable: If none were sampled.
    """
    samples = own_samples(counters.filter(pl.col("name").str.contains(ROLES["clock"])), ranks).collect()
    if unknown := without_rows(ranks_of(counters), samples):
        raise Unavailable(NO_CLOCKS if counters.limit(1).collect().height else NO_COUNTERS, of=unknown)
    about = _about(RANKS.or_empty(ranks).collect(), limits)
    keys, value = ["rank", "name"], pl.col("value")
    timed = samples.join(about, on="rank", how="left").with_columns(
        nominal=pl.when(pl.col("name") == AI_CORES).then("nominal"),
        held=(pl.coalesce(pl.col("time_ns").shift(-1).over(keys), "end_ns") - pl.col("time_ns")).clip(0).fill_null(0),
    )
    is_nominal = value >= pl.col("nominal") * (1 - limits.tolerance_ratio)
    is_idle = (value / limits.idle_mhz - 1).abs() <= limits.tolerance_ratio
    levels = value.unique().sort()
    texts = levels.round(0).cast(pl.Int64).cast(pl.String)
    listed = pl.when(levels.len() <= limits.shown).then(texts.str.join(", "))
    held = pl.col("held").sum()
    below = pl.col("held").filter(~is_nominal).sum() / held
    return (
        timed.sort(*keys, "time_ns")
        .group_by(keys, maintain_order=True)
        .agg(
            samples=pl.len().cast(pl.Int64),
            rates_mhz=pl.coalesce(listed, texts.first() + " to " + texts.last()),
            lowest_mhz=value.min(),
            mean_mhz=pl.when(held > 0).then((value * pl.col("held")).sum() / held).otherwise(value.mean()),
            highest_mhz=value.max(),
            nominal_mhz=pl.col("nominal").first(),
            below_ratio=pl.when(pl.col("nominal").is_not_null().first() & (held > 0)).then(below),
            state=pl.when(pl.col("nominal").is_not_null().first()).then(
                first_label({"normal": is_nominal.all(), "idle": (is_nominal | is_idle).all()}, otherwise="low")
            ),
        )
        .select(names(COLUMNS))
        .sort(keys)
    )


def _about(ranks: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """The nominal rate of each rank's AI cores, and the end of its recording."""
    nominal = pl.lit(limits.nominal_mhz or None, pl.Float64)
    stated = pl.when(pl.col("nominal_clock_mhz") > 0).then("nominal_clock_mhz")
    rows = ranks.select("rank", "end_ns", nominal=pl.coalesce(nominal, stated))
    return rows.unique("rank", keep="first", maintain_order=True)
