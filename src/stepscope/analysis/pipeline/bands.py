"""When each rank computes, communicates, sends and receives in one step, in as few ranges as a figure can show."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.intervals import END
from stepscope.analysis.pipeline.timeline import NO_OPERATORS, chosen_steps
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import COLLECTIVES, KERNELS
from stepscope.tables.base import Column

PIECES = 400
"""A gap shorter than the step over this is none: nobody would see it."""

COMPUTING, COLLECTIVE, SEND, RECEIVE = "computing", "collective", "send", "receive"
KINDS = (COMPUTING, COLLECTIVE, SEND, RECEIVE)

_TRANSFERS = {"send": SEND, "recv": RECEIVE}

COLUMNS = columns(
    "rank step",
    Column("band", "string", "What the rank does.", nullable=False, values=KINDS, importance=90),
    Column("start_ns", "int64", "Start of the range, on the common clock.", moment=True, importance=80),
    Column("end_ns", "int64", "Its end, on the common clock.", moment=True, importance=79),
    Column("busy_ns", "int64", "Sum of their times, also of those that overlap.", importance=60),
    Column("calls", "int64", "Kernels, operators or calls in it.", importance=50),
    Column("name", "string", "Name of its only one; null if there are several.", importance=70),
    nulls="name",
)


@analysis("rank", COLUMNS, together=True)
def step_bands(
    steps: pl.LazyFrame,
    clocks: pl.DataFrame | None = None,
    kernels: pl.LazyFrame | None = None,
    collectives: pl.LazyFrame | None = None,
    activity: pl.DataFrame | None = None,
    step: int | None = None,
) -> pl.DataFrame:
    """Find when each rank computes, communicates, sends and receives in one step: one row per rank, band and range.

    Ranges with hardly a gap between them are one. Where no kernels are known, the time in which the rank's host
    computes counts (`activity`).

    Args:
        step: The step. Default: the second of those that are asked about, as the first one may be start-up, or the only
            one.

    Raises:
        Unavailable: If nothing that has a step was recorded.
    """
    chosen = chosen_steps(steps, step)
    work = KERNELS.or_empty(kernels).select("rank", "step", "kind", "name", "start_ns", end_ns=END)
    of_step = work.join(chosen, on=["rank", "step"], how="semi").collect()
    calls = COLLECTIVES.or_empty(collectives).select(
        "rank", "step", "operation", "name", "on_device", "start_ns", end_ns=END
    )
    called = calls.join(chosen, on=["rank", "step"], how="semi").collect()
    on_device = pl.col("on_device") | ~pl.col("on_device").any().over("rank")
    own = called.filter(on_device.fill_null(value=True)).with_columns(
        band=pl.col("operation").replace_strict(_TRANSFERS, default=COLLECTIVE, return_dtype=pl.String)
    )
    from_kernels = of_step.filter(pl.col("kind") == "communication").join(own, on="rank", how="anti")
    computing = of_step.filter(pl.col("kind") == "compute")
    parts = [
        own.select("rank", "step", "band", "name", "start_ns", "end_ns"),
        from_kernels.select("rank", "step", pl.lit(COLLECTIVE).alias("band"), "name", "start_ns", "end_ns"),
        computing.select("rank", "step", pl.lit(COMPUTING).alias("band"), "name", "start_ns", "end_ns"),
        _on_host(activity, chosen.collect(), computing),
    ]
    found = pl.concat(parts).sort("rank", "band", "start_ns", "end_ns", "name", nulls_last=True)
    if found.is_empty():
        raise Unavailable(NO_OPERATORS)
    known = pl.DataFrame(schema={"rank": pl.Int32, "offset_ns": pl.Int64}) if clocks is None else clocks
    length = (pl.col("end_ns").max() - pl.col("start_ns").min()).over("rank")
    gap = pl.col("start_ns") - pl.col("end_ns").cum_max().shift(1).over("rank", "band")
    begins = (gap.is_null() | (gap * PIECES > length)).cum_sum()
    offset = pl.col("offset_ns").fill_null(0)
    ranges = (
        found.with_columns(piece=begins)
        .group_by("rank", "step", "band", "piece")
        .agg(
            pl.col("start_ns").min(),
            pl.col("end_ns").max(),
            busy_ns=(pl.col("end_ns") - pl.col("start_ns")).sum(),
            calls=pl.len().cast(pl.Int64),
            name=pl.when(pl.len() == 1).then(pl.col("name").first()),
        )
        .join(known.select("rank", "offset_ns"), on="rank", how="left")
        .with_columns(pl.col("start_ns", "end_ns") - offset)
    )
    return ranges.select(names(COLUMNS)).sort("rank", "start_ns", "band", "end_ns")


def _on_host(activity: pl.DataFrame | None, chosen: pl.DataFrame, computing: pl.DataFrame) -> pl.DataFrame:
    """Computing of ranks without kernels, cut to the step."""
    schema = {
        **{"rank": pl.Int32, "step": pl.Int32, "band": pl.String, "name": pl.String},
        **{"start_ns": pl.Int64, "end_ns": pl.Int64},
    }
    if activity is None:
        return pl.DataFrame(schema=schema)
    host = activity.filter((pl.col("what") == COMPUTING) & ~pl.col("on_device"))
    windows = chosen.join(computing, on="rank", how="anti").rename({"start_ns": "from_ns", "end_ns": "to_ns"})
    cut = host.join(windows, on="rank").filter(
        (pl.col("end_ns") > pl.col("from_ns")) & (pl.col("start_ns") < pl.col("to_ns"))
    )
    return cut.select(
        "rank",
        "step",
        band=pl.lit(COMPUTING),
        name=pl.lit(None, pl.String),
        start_ns=pl.max_horizontal("start_ns", "from_ns"),
        end_ns=pl.min_horizontal("end_ns", "to_ns"),
    )
