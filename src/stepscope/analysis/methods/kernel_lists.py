"""Sequences of kernels: which kernels something launched, in order, as lists of numbers and as text."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.names import names_of, unnumbered

ARROW = " -> "
"""Between the kernels of a sequence."""


def numbered_kernels(kernels: pl.LazyFrame, owned: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """Kernels in the order of their launches, and the name of each number.

    Args:
        kernels: Device work.
        owned: `rank`, `kernel` and `slice`, what it belongs to; other work is left out.

    Returns:
        `rank`, `slice`, `number` (of its name), `launch_start_ns`, `start_ns`, `duration_ns`; and the names.
    """
    names = _numbers(names_of(kernels).sort("name"))
    columns = ["rank", "kernel", "launch_start_ns", "start_ns", "duration_ns"]
    parts = [
        batch.join(names.drop("shown"), on="name", how="left", maintain_order="left").select(*columns, "number")
        for batch in batches(kernels.select(*columns, "name"))
    ]
    rows = pl.concat(parts).join(owned, on=["rank", "kernel"], maintain_order="left")
    launched = rows.sort(pl.coalesce("launch_start_ns", "start_ns"), "start_ns", "kernel")
    return launched.drop("kernel"), names.unique("number", keep="first", maintain_order=True).sort("number")["shown"]


def _numbers(names: pl.DataFrame) -> pl.DataFrame:
    """A `number` for each `name`, in order of what is `shown`: calls that only their number tells apart have one."""
    known = names.with_columns(shown=unnumbered())
    each = known.select(pl.col("shown").unique().sort()).with_row_index("number")
    return known.join(each, on="shown", how="left", maintain_order="left")


def sequences(rows: pl.DataFrame) -> pl.DataFrame:
    """The kernels of each owner (of `numbered_kernels`).

    Returns:
        `rank`, `slice`, `sequence` (numbers), `kernels`, `kernel_ns`, `launch_ns` (start of the first launch) and
        `first_ns` (start of the first kernel).
    """
    return rows.group_by("rank", "slice", maintain_order=True).agg(
        sequence=pl.col("number"),
        kernels=pl.len().cast(pl.Int64),
        kernel_ns=pl.col("duration_ns").sum(),
        launch_ns=pl.col("launch_start_ns").first(),
        first_ns=pl.col("start_ns").first(),
    )


def callers(operators: pl.LazyFrame, work: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Rows of `sequences` with some columns of the operators that they belong to."""
    keys = ["rank", "slice"]
    known = operators.select(*keys, *columns).join(work.lazy().select(keys), on=keys, how="semi")
    return work.join(known.collect(engine="streaming"), on=keys, maintain_order="left")


def as_text(found: pl.DataFrame, names: pl.Series, shown: int = 0) -> pl.DataFrame:
    """Rows with their `sequence` as text: names of kernels, repeated ones as `name (x3)`.

    Args:
        found: Rows with a list of numbers (`sequence`).
        names: The name of each number.
        shown: Write only so many entries and how many kernels follow; 0 for all.
    """
    rows = found.with_row_index("row")
    each = rows.select("row", number="sequence").explode("number")
    new = (pl.col("number") != pl.col("number").shift(1)) | (pl.col("row") != pl.col("row").shift(1))
    runs = (
        each.with_columns(run=new.fill_null(True).cum_sum())
        .group_by("run", maintain_order=True)
        .agg(pl.col("row", "number").first(), times=pl.len())
        .with_columns(place=pl.int_range(pl.len()).over("row"))
    )
    kept = runs.filter(pl.col("place") < shown) if shown else runs
    again = pl.when(pl.col("times") > 1).then(" (x" + pl.col("times").cast(pl.String) + ")").otherwise(pl.lit(""))
    words = kept.with_columns(names.gather(kept["number"]).alias("word")).with_columns(word=pl.col("word") + again)
    texts = words.group_by("row").agg(text=pl.col("word").str.join(ARROW), told=pl.col("times").sum().cast(pl.Int64))
    rest = pl.col("kernels") - pl.col("told")
    more = pl.when(rest > 0).then(ARROW + rest.cast(pl.String) + " more").otherwise(pl.lit(""))
    joined = rows.join(texts, on="row", how="left", maintain_order="left")
    return joined.with_columns(sequence=pl.col("text") + more).drop("row", "text", "told")
