"""Which operators ran while the device's clock was below its rate, in which steps, and what that cost them."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.job.counter_steps import own_samples
from stepscope.analysis.job.frequencies import AI_CORES
from stepscope.analysis.job.frequencies import Limits as Rates
from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.work_classes import work_class
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables import COUNTERS, RANKS
from stepscope.tables.base import Column, schema_of

GPU_CLOCK = "sm_clock_mhz"

_MATRIX = ("attention", "matmul", "convolution")
"""Classes of work that computing limits, as a rule."""


@dataclass(frozen=True)
class Limits:
    """What counts as a lower clock rate."""

    decreased_ratio: float = limit(0.01, "below the rate, mean of an operator in a step", "chosen by us: whole MHz")
    idle_ratio: float = limit(
        0.5,
        "of a step's kernels, by time, at the rate of idle cores",
        "chosen by us: with less, it is what is left of an idle moment; with more, the device is held at that rate",
    )
    usual_ratio: float = limit(
        0.95, "of the time of kernels, at most this rate", "chosen by us, of devices that state no rate of their own"
    )


LIMITS = Limits()

COLUMNS = columns(
    "rank step name type core",
    Column("counter", "string", "Counter of the clock, with its unit.", importance=5),
    "count total_ns",
    Column("decreased_ratio", "float64", "How far below the rate the clock was, mean by time.", title="decreased"),
    Column("mean_mhz", "float64", "Mean clock rate while it ran.", title="mean"),
    Column("min_mhz", "float64", "Lowest clock rate at the start or end of a call.", title="min"),
    Column("max_mhz", "float64", "Highest clock rate at the start or end of a call.", title="max"),
    Column(
        "nominal_mhz",
        "float64",
        "The rate that the recording states of the device, else the usual highest while it computes.",
        title="rate",
    ),
    Column("stated", "bool", "True if the recording states that rate.", importance=4),
    Column(
        "lost_ns",
        "int64",
        "What it would be shorter at that rate, as far as computing limits it; null if unknown.",
        title="lost",
    ),
    nulls="type core lost_ns",
    keep="rank step name decreased_ratio total_ns lost_ns count mean_mhz",
)


@analysis("rank", COLUMNS, together=True)
def throttled_operators(
    kernels: pl.LazyFrame,
    counters: pl.LazyFrame | None = None,
    ranks: pl.LazyFrame | None = None,
    operator_work: pl.DataFrame | None = None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """List operators of steps in which the clock was lower while they ran, in order; no row is good news.

    Moments at the rate of idle cores do not count, unless most of a step's kernels run at it.
    """
    rates = Rates()
    series = _series(COUNTERS.or_empty(counters), ranks, rates)
    if series.is_empty():
        return pl.DataFrame(schema=schema_of(COLUMNS))
    timed = _timed(kernels, series)
    if timed.is_empty():
        return pl.DataFrame(schema=schema_of(COLUMNS))
    usual = (
        timed.filter(pl.col("nominal").is_null())
        .sort("rank", "rate")
        .with_columns(upto=pl.col("total_ns").cum_sum().over("rank") / pl.col("total_ns").sum().over("rank"))
    )
    highest = usual.filter(pl.col("upto") >= limits.usual_ratio).group_by("rank").agg(usual=pl.col("rate").min())
    known = timed.join(highest, on="rank", how="left").with_columns(
        stated=pl.col("nominal").is_not_null(), nominal_mhz=pl.coalesce("nominal", "usual")
    )
    at_idle = pl.col("idle_ns").sum().over("rank", "step") > limits.idle_ratio * pl.col("total_ns").sum().over(
        "rank", "step"
    )
    counts = (
        pl.when(at_idle)
        .then(pl.col("rate"))
        .otherwise(
            (pl.col("rate") * pl.col("total_ns") - pl.col("idle_area") + pl.col("nominal_mhz") * pl.col("idle_ns"))
            / pl.col("total_ns").clip(lower_bound=1)
        )
    )
    keys = ["rank", "step", "name", "type", "core", "counter"]
    total = pl.col("total_ns").sum()
    sums = (
        known.with_columns(counts=counts)
        .group_by(keys)
        .agg(
            pl.col("nominal_mhz", "stated").first(),
            pl.col("count").sum(),
            total_ns=total,
            mean_mhz=(pl.col("counts") * pl.col("total_ns")).sum() / total,
            min_mhz=pl.col("low").min(),
            max_mhz=pl.col("high").max(),
        )
        .with_columns(decreased_ratio=1 - pl.col("mean_mhz") / pl.col("nominal_mhz"))
        .filter(pl.col("decreased_ratio") >= limits.decreased_ratio)
    )
    lost = pl.col("total_ns") * pl.col("decreased_ratio") * pl.col("limited")
    return (
        sums.join(_limited(operator_work), on=["rank", "name", "type", "core"], how="left", nulls_equal=True)
        .with_columns(min_mhz=pl.min_horizontal("min_mhz", "mean_mhz"), lost_ns=lost.round().cast(pl.Int64))
        .select(names(COLUMNS))
        .sort("rank", "step", -pl.col("total_ns"), "name", "type", "core", nulls_last=True)
    )


def _series(counters: pl.LazyFrame, ranks: pl.LazyFrame | None, rates: Rates) -> pl.DataFrame:
    """The clock's samples of ranks in which it ever differs from its rate, with the integral up to each (`area`) and
    that of idle cores (`idle_area`, `idle_ns`)."""
    wanted = counters.filter(pl.col("name").is_in([AI_CORES, GPU_CLOCK]))
    samples = own_samples(wanted, ranks).collect()
    stated = pl.when(pl.col("nominal_clock_mhz") > 0).then("nominal_clock_mhz")
    about = RANKS.or_empty(ranks).select("rank", nominal=stated).unique("rank", keep="first", maintain_order=True)
    # the rate that a device states is that of its AI cores
    nominal = pl.when(pl.col("name") == AI_CORES).then("nominal")
    known = samples.join(about.collect(), on="rank", how="left", maintain_order="left").with_columns(nominal=nominal)
    low = pl.col("value") < pl.coalesce("nominal", pl.col("value").max().over("rank", "name")) * (
        1 - rates.tolerance_ratio
    )
    by = ["rank"]
    first = pl.col("name") == pl.col("name").first().over("rank")
    moving = known.filter(first).filter(low.any().over("rank")).sort("rank", "time_ns")
    is_idle = (pl.col("name") == AI_CORES) & ((pl.col("value") / rates.idle_mhz - 1).abs() <= rates.tolerance_ratio)
    held = (pl.col("time_ns").shift(-1) - pl.col("time_ns")).over(by)
    upto = {
        "area": pl.col("value") * held,
        "idle_area": pl.when("is_idle").then(pl.col("value") * held).otherwise(0.0),
        "idle_ns": pl.when("is_idle").then(held).otherwise(0),
    }
    summed = {name: one.shift(1).over(by).fill_null(0).cum_sum().over(by) for name, one in upto.items()}
    return moving.with_columns(is_idle=is_idle & (pl.col("nominal").is_not_null())).with_columns(**summed)


def _timed(kernels: pl.LazyFrame, series: pl.DataFrame) -> pl.DataFrame:
    """Kernels by rank, step, operator and clock: number, time, mean rate, and what was at the rate of idle cores."""
    ranks = series["rank"].unique().implode()
    on_core = pl.col("core").is_null() | pl.col("core").is_in(["AI_CORE", "MIX_AIC"])
    rows = kernels.filter(
        (pl.col("kind") == "compute") & pl.col("step").is_not_null() & on_core & pl.col("rank").is_in(ranks)
    ).select("rank", "step", "name", "type", "core", "start_ns", "duration_ns")
    samples = series.rename({"name": "counter"}).sort("time_ns")
    keys = ["rank", "step", "name", "type", "core", "counter", "nominal", "rate"]
    parts = []
    for batch in batches(rows.filter(pl.col("duration_ns") > 0)):
        start = _at(batch, samples, pl.col("start_ns"))
        end = _at(batch, samples, pl.col("start_ns") + pl.col("duration_ns"), before=True)
        whole = pl.DataFrame(
            {
                **{name: batch[name] for name in ("rank", "step", "name", "type", "core")},
                **{name: start[name] for name in ("counter", "nominal")},
                "total_ns": batch["duration_ns"],
                "rate": (end["area"] - start["area"]) / batch["duration_ns"],
                "idle_ns": end["idle_ns"] - start["idle_ns"],
                "idle_area": end["idle_area"] - start["idle_area"],
                "low": pl.select(pl.min_horizontal(start["value"], end["value"])).to_series(),
                "high": pl.select(pl.max_horizontal(start["value"], end["value"])).to_series(),
            }
        )
        known = whole.drop_nulls(["rate", "counter"]).with_columns(pl.col("rate").round(1))
        parts.append(
            known.group_by(keys).agg(
                pl.col("total_ns", "idle_ns", "idle_area").sum(),
                pl.col("low").min(),
                pl.col("high").max(),
                count=pl.len().cast(pl.Int64),
            )
        )
    return pl.concat(parts)


def _at(rows: pl.DataFrame, samples: pl.DataFrame, time: pl.Expr, *, before: bool = False) -> pl.DataFrame:
    """The clock at a moment of each row, or just `before` it, with the integrals up to it, in order of the rows."""
    asked = rows.select("rank", at=time).with_row_index("row").sort("at")
    found = asked.join_asof(
        samples, left_on="at", right_on="time_ns", by="rank", check_sortedness=False, allow_exact_matches=not before
    )
    since = pl.col("at") - pl.col("time_ns")
    return found.sort("row").with_columns(
        area=pl.col("area") + pl.col("value") * since,
        idle_area=pl.col("idle_area") + pl.when("is_idle").then(pl.col("value") * since).otherwise(0.0),
        idle_ns=pl.col("idle_ns") + pl.when("is_idle").then(since).otherwise(0),
    )


def _limited(work: pl.DataFrame | None) -> pl.DataFrame:
    """Share of each operator's time that computing limits: by its pipes, else matrix products and attention as a whole;
    null if unknown."""
    keys = ["rank", "name", "type", "core"]
    if work is None:
        schema = {"rank": pl.Int32, "name": pl.String, "type": pl.String, "core": pl.String, "limited": pl.Float64}
        return pl.DataFrame(schema=schema)
    computing = pl.max_horizontal("mac_ratio", "vec_ratio")
    moving = pl.max_horizontal("mte2_ratio", "mte3_ratio")
    is_matrix = work_class(pl.coalesce("type", "name"), pl.col("core")).is_in(_MATRIX)
    limited = (
        pl.when(pl.col("counted") > 0)
        .then((computing >= moving).fill_null(value=False))
        .otherwise(pl.when(is_matrix).then(pl.lit(value=True)))
    )
    rows = work.with_columns(limited=limited)
    known = pl.col("total_ns").filter(pl.col("limited").is_not_null()).sum()
    share = pl.col("total_ns").filter(pl.col("limited").fill_null(value=False)).sum() / known
    return rows.group_by(keys).agg(limited=pl.when(known > 0).then(share))
