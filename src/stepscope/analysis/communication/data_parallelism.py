"""How PyTorch keeps the copies of a model alike: by which wrapper, over which backend, and how often."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.names import named, names_of
from stepscope.analysis.registry import analysis
from stepscope.tables import COLLECTIVES, RANKS
from stepscope.tables.base import Column

DDP, FSDP, THREADS = "DistributedDataParallel", "FullyShardedDataParallel", "DataParallel"
WRAPPERS = (DDP, FSDP, THREADS)

MARKS = {
    "is_ddp": r"^DistributedDataParallel\.forward$",
    "is_fsdp": r"^FullyShardedDataParallel\.forward$|^FSDP::",
    "is_threads": r"^DataParallel\.forward$|nn/parallel/data_parallel\.py\(\d+\): forward$",
    "is_optimizer": r"^Optimizer\.step#",
    "is_reduce": r"^c10d::allreduce_$",
    "is_search": r"^torch\.distributed\.ddp\.reducer::search_unused_parameters$",
    "is_copy": r"^torch\.distributed\.ddp\.reducer::copy_bucket_to_grad$",
}
"""What PyTorch marks, by name."""

COLUMNS = columns(
    "rank",
    Column("wrapper", "string", "What keeps the copies of the model alike; null if none is marked.", values=WRAPPERS),
    Column("backend", "string", "Communication backend, e.g. `nccl`, `gloo`; null if not recorded."),
    Column("forwards", "int64", "Forward passes of the wrapper."),
    Column("optimizer_steps", "int64", "Steps of the optimizer; of several, of the one with most."),
    Column("reduced", "int64", "Forward passes after which gradients are summed before the next one."),
    Column("device_calls", "int64", "Communication calls on devices."),
    Column("host_calls", "int64", "Communication calls on the host."),
    Column("host_ns", "int64", "Time of the latter, one after the other.", title="time on host"),
    Column("all_reduces", "int64", "All-reduce calls."),
    Column("mean_bytes", "int64", "Mean size of these; null if not recorded.", title="mean size"),
    Column("copies", "int64", "Gradients copied out of buckets, which `gradient_as_bucket_view` avoids."),
    Column("copies_ns", "int64", "Time of the host for these copies.", title="time of copies"),
    Column("searches", "int64", "Searches for unused parameters, which `find_unused_parameters` asks for."),
    Column("searches_ns", "int64", "Time of the host for these searches.", title="time of searches"),
    nulls="wrapper backend mean_bytes",
)


@analysis("rank", COLUMNS, together=True)
def data_parallelism(
    slices: pl.LazyFrame, ranks: pl.LazyFrame | None = None, collectives: pl.LazyFrame | None = None
) -> pl.DataFrame:
    """Count what PyTorch marks of data parallelism on each rank: one row per rank that has any of it."""
    known = names_of(slices)
    found = named(slices, known, **{kind: pl.col("name").str.contains(text) for kind, text in MARKS.items()})
    kinds = {kind: condition.alias(kind) for kind, condition in found.items()}
    on_host = pl.col("device").is_null() & pl.col("stream").is_null()
    marks = (
        slices.filter(on_host & pl.any_horizontal(*found.values()))
        .select("rank", "name", "start_ns", "duration_ns", *kinds.values())
        .collect(engine="streaming")
        .sort("rank", "start_ns", "name")
    )
    of_name = marks.group_by("rank", "name").agg(pl.col("is_optimizer").sum().cast(pl.Int64).alias("steps"))
    counts = marks.group_by("rank").agg(
        ddp=pl.col("is_ddp").sum().cast(pl.Int64),
        fsdp=pl.col("is_fsdp").sum().cast(pl.Int64),
        threads=pl.col("is_threads").sum().cast(pl.Int64),
        copies=pl.col("is_copy").sum().cast(pl.Int64),
        copies_ns=pl.col("duration_ns").filter("is_copy").sum(),
        searches=pl.col("is_search").sum().cast(pl.Int64),
        searches_ns=pl.col("duration_ns").filter("is_search").sum(),
    )
    calls = (
        COLLECTIVES.or_empty(collectives)
        .group_by("rank")
        .agg(
            device_calls=pl.col("on_device").sum().cast(pl.Int64),
            host_calls=(~pl.col("on_device")).sum().cast(pl.Int64),
            host_ns=pl.col("duration_ns").filter(~pl.col("on_device")).sum(),
            all_reduces=(pl.col("operation") == "all_reduce").sum().cast(pl.Int64),
            mean_bytes=pl.col("size_bytes").filter(pl.col("operation") == "all_reduce").mean().round().cast(pl.Int64),
        )
        .collect()
    )
    backends = RANKS.or_empty(ranks).group_by("rank").agg(pl.col("backend").drop_nulls().first()).collect()
    wrapper = (
        pl.when(pl.col("ddp") > 0)
        .then(pl.lit(DDP))
        .when(pl.col("fsdp") > 0)
        .then(pl.lit(FSDP))
        .when(pl.col("threads") > 0)
        .then(pl.lit(THREADS))
    )
    zero = ("forwards", "optimizer_steps", "reduced", "device_calls", "host_calls", "host_ns", "all_reduces", "copies")
    return (
        calls.join(counts, on="rank", how="full", coalesce=True)
        .join(of_name.group_by("rank").agg(optimizer_steps=pl.col("steps").max()), on="rank", how="left")
        .join(_reduced(marks), on="rank", how="left")
        .join(backends, on="rank", how="left")
        .with_columns(wrapper=wrapper, forwards=pl.when(pl.col("ddp") > 0).then("ddp").otherwise("threads"))
        .with_columns(pl.col(*zero, "copies_ns", "searches", "searches_ns").fill_null(0))
        .select(names(COLUMNS))
        .sort("rank")
    )


def _reduced(marks: pl.DataFrame) -> pl.DataFrame:
    """After how many forward passes of DDP a sum of gradients begins on the host before the next one (`reduced`)."""
    forwards = marks.filter("is_ddp").select("rank", "start_ns", begun="start_ns")
    sums = marks.filter("is_reduce").select("rank", "start_ns")
    placed = sums.sort("start_ns").join_asof(
        forwards.sort("start_ns"), on="start_ns", by="rank", check_sortedness=False
    )
    return placed.drop_nulls("begun").group_by("rank").agg(reduced=pl.col("begun").n_unique().cast(pl.Int64))
