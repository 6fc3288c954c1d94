"""What ranks do in each step, counted: how often each kernel runs, or each operator of a CPU, and how long."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.names import named
from stepscope.analysis.step.host_work import COMMUNICATION_CALL, ENGINE
from stepscope.tables import KERNELS, OPERATORS

CELL = ["rank", "step", "kind"]

_CLASS = ["name", "grid", "input_shapes"]

_SUMS = {"length": pl.col("length").sum(), "count": pl.len().cast(pl.Int64)}


def _text(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.String).fill_null("")


def by_kernel(pieces: pl.DataFrame, kernels: pl.LazyFrame | None) -> pl.DataFrame:
    """The kernels of pieces of work (`CELL`, `kernel`, `length`), by name, grid and shapes: `length`, `count`."""
    known = KERNELS.or_empty(kernels).select("rank", "kernel", *map(_text, _CLASS)).collect()
    return pieces.join(known, on=["rank", "kernel"]).group_by(*CELL, *_CLASS).agg(**_SUMS)


def by_operator(pieces: pl.DataFrame, operators: pl.LazyFrame | None) -> pl.DataFrame:
    """The same of the operators of ranks without a device in the steps of some pieces, apart from calls and what waits
    for these."""
    steps = pieces.select("rank", "step").unique()
    own = OPERATORS.or_empty(operators).filter(pl.col("rank").is_in(steps["rank"].unique().implode()))
    waits = named(own, waits=pl.col("name").str.contains(f"{COMMUNICATION_CALL}|{ENGINE}"))["waits"]
    shown = [_text("name"), pl.lit("").alias("grid"), _text("input_shapes")]
    computing = pl.lit("computing").alias("kind")
    rows = own.filter(~waits.fill_null(value=False)).select("rank", "step", computing, *shown, length="self_ns")
    found = rows.group_by(*CELL, *_CLASS).agg(**_SUMS).collect(engine="streaming")
    return found.join(steps, on=["rank", "step"], how="semi")


def in_same_work(done: pl.DataFrame, alike_ratio: float) -> pl.DataFrame:
    """The rows of `by_kernel` and `by_operator` in steps in which all ranks do what they do in their typical step, but
    for a share."""
    keys = ["rank", *_CLASS]
    counts = done.select(*keys, "step", "count")
    steps = done.group_by("rank").agg(steps=pl.col("step").n_unique().cast(pl.Int64))
    usual = (
        counts.group_by(keys).agg(usual=pl.col("count").median(), seen=pl.len().cast(pl.Int64)).join(steps, on="rank")
    )
    usual = usual.with_columns(usual=pl.when(2 * pl.col("seen") > pl.col("steps")).then("usual").otherwise(0.0))
    every = done.select("rank", "step").unique().join(usual.select(*keys, "usual"), on="rank")
    off = (pl.col("count").fill_null(0) - pl.col("usual")).abs().sum()
    same = (
        every.join(counts, on=[*keys, "step"], how="left")
        .group_by("rank", "step")
        .agg(off=off / pl.col("usual").sum().clip(lower_bound=1))
        .group_by("step")
        .agg(pl.col("off").max())
        .filter(pl.col("off") <= alike_ratio)
    )
    return done.join(same.select("step"), on="step", how="semi")
