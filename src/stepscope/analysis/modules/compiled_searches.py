"""How often a compiled function finds a version that fits, has one compiled, or runs as if it were not compiled."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.methods.compiled_calls import COMPILED, REGION, RUN, SEARCHED, compiled_calls
from stepscope.analysis.registry import analysis
from stepscope.tables import RANKS
from stepscope.tables.base import Column

COLUMNS = columns(
    "rank",
    Column("searches", "int64", "Calls of compiled functions in steps: searches for a version that fits."),
    Column("ran", "int64", "Of these, a version was found and ran."),
    Column("compiled", "int64", "Of these, a compiler started."),
    Column("missed", "int64", "Of these, neither: the function ran as if it were not compiled."),
    Column("missed_steps", "int64", "Steps with such calls."),
    Column("last_missed", "bool", "True if calls of the last step are among them."),
    Column("highest_version", "int64", "Highest version that ran, from 0; null if none ran or they are not numbered."),
    nulls="highest_version",
    keep="rank searches missed",
)

NO_SEARCHES = "no call of a function that torch.compile compiled was recorded in steps, or of a version before 2.2"


@analysis("rank", COLUMNS, together=True, nothing=NO_SEARCHES)
def compiled_searches(slices: pl.LazyFrame, ranks: pl.LazyFrame | None = None) -> pl.DataFrame:
    """Count the calls of compiled functions in steps by what follows the search for a version: one row per rank.

    PyTorch marks versions that run since 2.2. Recordings without any are only judged if they are known to be of a later
    one: by its number, or by their time base, which came with 2.4.
    """
    calls = compiled_calls(slices)
    number = [pl.col("framework_version").str.extract(r"^(\d{1,9})\.(\d{1,9})", part).cast(pl.Int64) for part in (1, 2)]
    by_number = (number[0] > 2) | (number[0] == 2) & (number[1] >= 2)
    later = RANKS.or_empty(ranks).filter(by_number.fill_null(value=False) | (pl.col("base_ns").fill_null(0) > 0))
    marked = pl.col("rank").is_in(calls.filter(pl.col("what") == RUN)["rank"].unique().implode())
    known = marked | pl.col("rank").is_in(later.select("rank").collect()["rank"].implode())
    missed = ~pl.col("next").is_in([RUN, COMPILED]).fill_null(value=False)
    versions = calls.filter((pl.col("what") == RUN) & pl.col("step").is_not_null()).group_by("rank").agg(
        highest_version=pl.col("name").str.extract(REGION, 2).cast(pl.Int64).max()
    )  # fmt: skip
    return (
        calls.filter((pl.col("what") == SEARCHED) & pl.col("step").is_not_null() & known)
        .group_by("rank")
        .agg(
            searches=pl.len().cast(pl.Int64),
            ran=(pl.col("next") == RUN).sum().cast(pl.Int64),
            compiled=(pl.col("next") == COMPILED).sum().cast(pl.Int64),
            missed=missed.sum().cast(pl.Int64),
            missed_steps=pl.col("step").filter(missed).n_unique().cast(pl.Int64),
            last_missed=(missed & (pl.col("step") == pl.col("step").max())).any(),
        )
        .join(versions, on="rank", how="left")
        .select(column.name for column in COLUMNS)
        .sort("rank")
    )
