"""The buckets in which PyTorch's DistributedDataParallel sums gradients, and how much of the backward pass is left when
each begins."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.communication.data_parallelism import MARKS
from stepscope.analysis.methods.intervals import END, covered, starting_in, union
from stepscope.analysis.methods.names import named, names_of
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column

COLUMNS = columns(
    "rank",
    Column("bucket", "int64", "Place of the bucket in its backward pass, in the order of launches, from 0."),
    "group",
    Column("calls", "int64", "All-reduces of it in steps."),
    meaning("size_bytes", "Median size; null if not recorded."),
    Column("sent_ns", "int64", "Median transmission, covered by computing or not; null if unknown."),
    Column("transmit_ns", "int64", "Transmission that no computing covers, in all steps; unknown calls count nothing."),
    Column("unsplit_ns", "int64", "Time that no computing covers of calls whose waiting is unknown, in all steps."),
    Column("left_ns", "int64", "Median computing of the backward pass that is left when it begins."),
    Column("backward_ns", "int64", "Median computing of the backward pass."),
    nulls="group size_bytes sent_ns",
    keep="rank bucket size_bytes calls sent_ns transmit_ns left_ns",
)

NO_BUCKETS = "no all-reduce was launched by a backward pass of DistributedDataParallel"


@analysis("rank", COLUMNS, together=True, nothing=NO_BUCKETS)
def gradient_buckets(
    phase_ranges: pl.DataFrame,
    activity: pl.DataFrame,
    exposed_calls: pl.DataFrame,
    slices: pl.LazyFrame,
    kernels: pl.LazyFrame,
    collectives: pl.LazyFrame,
) -> pl.DataFrame:
    """Find the all-reduces of DistributedDataParallel on devices: those that a thread of the backward pass launches.

    All-reduces that the thread of the forward pass launches, e.g. of a loss that is logged, are none of its buckets.

    Returns:
        One row per rank and bucket.
    """
    own = exposed_calls.filter((pl.col("operation") == "all_reduce") & pl.col("step").is_not_null())
    calls = own.join(_launched(slices, kernels), on=["rank", "start_ns"])
    if calls.is_empty():
        return pl.DataFrame(schema={column.name: None for column in COLUMNS})
    backward = phase_ranges.filter((pl.col("phase") == "backward") & pl.col("on_device"))
    passes = backward.select("rank", "start_ns", "end_ns", pass_ns="start_ns")
    placed = starting_in(calls.drop("end_ns"), passes, "pass_ns").with_row_index("row")
    busy = union(activity.filter(pl.col("what") == "computing").select("rank", "start_ns", "end_ns"), ["rank"])
    first, now, last = (
        covered(placed.select("rank", "row", at=at), busy) for at in ("pass_ns", "start_ns", "until_ns")
    )
    sizes = collectives.filter(pl.col("operation") == "all_reduce").select("rank", "collective", "size_bytes")
    bucket = pl.col("launch_ns").rank("ordinal").over("rank", "pass_ns").cast(pl.Int64) - 1
    return (
        placed.with_columns(bucket=bucket, left_ns=last - now, backward_ns=last - first)
        .join(sizes.collect(), on=["rank", "collective"], how="left", maintain_order="left")
        .group_by("rank", "bucket")
        .agg(
            pl.col("group").drop_nulls().sort().first(),
            calls=pl.len().cast(pl.Int64),
            size_bytes=rounded(pl.col("size_bytes").median()),
            sent_ns=rounded(pl.col("sent_ns").median()),
            transmit_ns=pl.col("transmit_ns").sum(),
            unsplit_ns=pl.col("unsplit_ns").sum(),
            left_ns=rounded(pl.col("left_ns").median()),
            backward_ns=rounded(pl.col("backward_ns").median()),
        )
        .select(names(COLUMNS))
        .sort("rank", "bucket")
    )


def _launched(slices: pl.LazyFrame, kernels: pl.LazyFrame) -> pl.DataFrame:
    """When calls of communication (`rank`, `start_ns`) were launched (`launch_ns`), of all-reduces that are called by
    other threads than forward passes."""
    asked = {kind: pl.col("name").str.contains(MARKS[kind]) for kind in ("is_ddp", "is_reduce")}
    known = names_of(slices)
    found = named(slices, known, **asked)
    # without both there is nothing to read
    some = slices if all(known.filter(one).height for one in asked.values()) else slices.head(0)
    marks = (
        some.filter(pl.col("device").is_null() & pl.col("stream").is_null() & pl.any_horizontal(*found.values()))
        .select("rank", "thread", "start_ns", found["is_reduce"].alias("is_reduce"), end_ns=END)
        .collect(engine="streaming")
    )
    forward = marks.filter(~pl.col("is_reduce")).select("rank", "thread").unique()
    with_ddp = marks.filter("is_reduce").join(forward, on="rank", how="semi")
    reduces = with_ddp.join(forward, on=["rank", "thread"], how="anti")
    launches = (
        kernels.filter((pl.col("kind") == "communication") & pl.col("launch_start_ns").is_not_null())
        .select("rank", "start_ns", launch_ns="launch_start_ns")
        .collect(engine="streaming")
        .sort("rank", "start_ns", "launch_ns")
        .unique(["rank", "start_ns"], keep="first", maintain_order=True)
    )
    return starting_in(launches, reduces, at="launch_ns").select("rank", "start_ns", "launch_ns")
