"""Ranges and points that a script or a framework marks: how often, how long, and the device work launched in them."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.distributions import STATISTICS, distributions
from stepscope.analysis.methods.launch_owners import Parents, launched_in
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.registry import analysis
from stepscope.sources.ancestors import climb
from stepscope.tables.base import Column
from stepscope.tables.slices import MARKS

CATEGORIES = {"annotation": "host", "device_annotation": "device", "mark": "point"}
"""Category of slices to where a range was recorded."""

PLACES = (*CATEGORIES.values(), "framework")

NO_RANGES = "no marked ranges were recorded (record_function, mstx, NVTX)"

TIMES = tuple(column.name for column in STATISTICS if column.name != "count")
"""Statistics that points do not have."""

_COLUMNS = columns(
    "rank",
    meaning("name", "Name of the range, as marked."),
    Column(
        "place",
        "string",
        "Where it was recorded: on the `host`, on the `device`, by the `framework` as well as on the host (mstx), or a "
        "`point` in time without a duration.",
        values=PLACES,
        importance=60,
    ),
    *STATISTICS,
    Column("kernels", "int64", "Pieces of device work launched in it on its thread; null if unknown.", importance=52),
    Column("kernel_ns", "int64", "Time of this work; null if unknown.", importance=53),
    nulls=f"{' '.join(TIMES)} kernels kernel_ns",
    keep="name total_ns count mean_ns",
)


@analysis("rank", _COLUMNS, together=True, nothing=NO_RANGES)
def ranges(slices: pl.LazyFrame, kernels: pl.LazyFrame | None) -> pl.DataFrame:
    """Sum up marked ranges and points: one row per name and place, longest total first.

    Args:
        slices: All ranges.
        kernels: Device work.
    """
    keys = ["rank", "place", "name"]
    marked = _marked(slices)
    sums = distributions(marked.lazy(), keys)
    known = pl.when(pl.col("place") != "point")
    work = _work(marked, slices, kernels)
    return (
        sums.join(work, on=keys, how="left", maintain_order="left")
        .with_columns(known.then(pl.col(*TIMES)))
        .select(column.name for column in _COLUMNS)
        .sort("rank", -pl.col("total_ns"), "name", "place", nulls_last=True)
    )


def _marked(slices: pl.LazyFrame) -> pl.DataFrame:
    """Marked ranges: `rank`, `slice`, `place`, `name`, `duration_ns`, `correlation`.

    What Ascend's tools mark on a device has no name there: it is that of the range on the host that it belongs to. The
    framework may record the same range once more.
    """
    rows = slices.filter(pl.col("category").is_in([*CATEGORIES]))
    columns = ("rank", "slice", "process", "name", "duration_ns", "correlation")
    place = pl.col("category").replace_strict(CATEGORIES, return_dtype=pl.String)
    every = pl.concat(batches(rows.select(*columns, place=place)))
    is_mstx = (pl.col("process") == MARKS).fill_null(False)
    keys = ["rank", "correlation"]
    on_host = every.filter(is_mstx, pl.col("place") == "host", pl.col("correlation").is_not_null())
    names = on_host.unique(keys, keep="first", maintain_order=True).select(*keys, marked="name")
    named = every.join(names, on=keys, how="left", maintain_order="left")
    again = pl.col("marked").is_not_null() & ~is_mstx & (pl.col("place") == "host")
    nameless = is_mstx & (pl.col("place") == "device")
    return named.with_columns(
        name=pl.when(nameless).then(pl.coalesce("marked", "name")).otherwise("name"),
        place=pl.when(again).then(pl.lit("framework")).otherwise("place"),
    )


def _work(marked: pl.DataFrame, slices: pl.LazyFrame, kernels: pl.LazyFrame | None) -> pl.DataFrame:
    """Device work launched in the ranges of a name, once however they are nested: `rank`, `place`, `name`, `kernels`,
    `kernel_ns`."""
    keys, work = ["rank", "place", "name"], ["rank", "kernel"]
    empty = marked.head(0).select(*keys, kernels=pl.lit(0, pl.Int64), kernel_ns=pl.lit(0, pl.Int64))
    if kernels is None:
        return empty
    own = marked.filter(pl.col("place") == "host").select("rank", "slice", "name")
    launched = kernels.filter(pl.col("correlation").is_not_null()).select(*work, "correlation", "duration_ns")
    rows = launched.collect(engine="streaming")
    around = launched_in(rows, own.lazy(), slices)
    parents = Parents(slices, around["rank"])
    parts = []
    for (rank,), part in around.partition_by("rank", as_dict=True, maintain_order=True).items():
        wanted = own.filter(pl.col("rank") == rank)
        parent = parents.of(rank, wanted["slice"])
        above = climb(parent.gather(wanted["slice"]), parent, wanted["slice"])
        outer = wanted.select("slice", "name").with_columns(outer=above)
        rest = part
        while rest.height:
            inside = rest.join(outer, on="slice", maintain_order="left")
            parts.append(inside.select(*work, "name"))
            rest = inside.select(*work, slice="outer").drop_nulls("slice")
    if not parts:
        return empty
    once = pl.concat(parts).unique(maintain_order=True).join(rows, on=work)
    sums = once.group_by("rank", "name").agg(kernels=pl.len().cast(pl.Int64), kernel_ns=pl.col("duration_ns").sum())
    ranks = sums["rank"].unique()
    known = own.filter(pl.col("rank").is_in(ranks.implode())).select("rank", "name").unique()
    counted = known.join(sums, on=["rank", "name"], how="left").with_columns(
        pl.col("kernels", "kernel_ns").fill_null(0)
    )
    return counted.select("rank", pl.lit("host").alias("place"), "name", "kernels", "kernel_ns")


@analysis(
    "job",
    columns(
        meaning("name", "Name of the range, as marked."),
        Column("place", "string", "As in `ranges`.", values=PLACES, importance=60),
        meaning("count", "Number of ranges or points on all ranks."),
        Column("ranks", "int64", "Ranks that have it.", importance=59),
        meaning("total_ns", "Total time of all ranks; null for points, as all times are."),
        meaning("mean_ns", "Mean of all of them."),
        Column("shortest_rank", "int32", "Rank with the shortest mean.", importance=51),
        Column("shortest_mean_ns", "int64", "Its mean.", importance=52),
        Column("longest_rank", "int32", "Rank with the longest mean.", importance=55),
        Column("longest_mean_ns", "int64", "Its mean.", importance=56),
        "min_ns max_ns",
        nulls="total_ns mean_ns shortest_rank shortest_mean_ns longest_rank longest_mean_ns min_ns max_ns",
        keep="name total_ns count mean_ns",
    ),
)
def rank_ranges(ranges: pl.DataFrame) -> pl.DataFrame:
    """Compare the ranges of a name over ranks: one row per name and place, the longest total first."""
    ordered = ranges.sort("mean_ns", "rank", nulls_last=True)
    timed = pl.col("total_ns").is_not_null()
    last = ranges.sort(-pl.col("mean_ns"), "rank", nulls_last=True).group_by("place", "name").agg(
        longest_rank=pl.col("rank").first(), longest_mean_ns=pl.col("mean_ns").first()
    )  # fmt: skip
    sums = ordered.group_by("place", "name", maintain_order=True).agg(
        pl.col("count", "total_ns").sum(),
        ranks=pl.len().cast(pl.Int64),
        mean_ns=rounded(pl.col("total_ns").sum() / pl.col("count").sum()),
        shortest_rank=pl.col("rank").first(),
        shortest_mean_ns=pl.col("mean_ns").first(),
        min_ns=pl.col("min_ns").min(),
        max_ns=pl.col("max_ns").max(),
        timed=timed.any(),
    )
    of_times = ("total_ns", "mean_ns", "shortest_rank", "shortest_mean_ns", "longest_rank", "longest_mean_ns")
    known = sums.join(last, on=["place", "name"], maintain_order="left")
    return (
        known.with_columns(pl.when("timed").then(pl.col(*of_times)))
        .select("name", "place", "count", "ranks", *of_times, "min_ns", "max_ns")
        .sort(-pl.col("total_ns"), "name", "place", nulls_last=True)
    )
