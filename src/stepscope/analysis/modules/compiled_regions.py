"""Which regions compiled by torch.compile run in a step, and which passes of compiled modules run none."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.compiled_calls import MARKS, REGION, RUN, SEARCHED
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column

_COMPILED = r"^(forward: |nn\.Module: )OptimizedModule(_\d+)?$"
_OTHER = rf"^(CompiledFunction|CompiledFxGraph)\b|^## Call CompiledFxGraph|{MARKS[RUN]}|{MARKS[SEARCHED]}"
"""What else is recorded of compiled code, also by versions without numbered regions, and the search for a version that
fits; where none does, `compiled_searches` tells."""

COLUMNS = columns(
    "rank",
    Column("function", "int64", "Number of the compiled function; null of passes that ran none.", importance=64),
    Column("versions", "int64", "Versions of it that ran; 0 of passes that ran none.", importance=62),
    meaning("count", "Calls in steps."),
    Column("per_step", "float64", "Calls in a step.", importance=60),
    meaning("total_ns", "Their time on the host."),
    nulls="function",
)

NO_REGIONS = "nothing that torch.compile compiled was recorded in steps"


@analysis("rank", COLUMNS, together=True, nothing=NO_REGIONS)
def compiled_regions(slices: pl.LazyFrame, steps: pl.LazyFrame) -> pl.DataFrame:
    """Count what torch.compile compiled: one row per function in the order of their numbers, then one for forward
    passes of compiled modules in which none ran, nor was searched for."""
    name = pl.col("name")
    some = slices.filter(
        pl.col("step").is_not_null() & pl.col("category").is_in(["operator", "annotation", "python"])
    ).select("rank", "name", "start_ns", "duration_ns")
    names = some.select("name").unique().collect(engine="streaming")["name"]
    wanted = names.filter(names.str.contains(f"{REGION}|{_COMPILED}|{_OTHER}"))
    rows = some.filter(name.is_in(wanted.implode())).collect()
    counted = steps.group_by("rank").agg(steps=pl.len()).collect()
    regions = rows.filter(name.str.contains(REGION)).with_columns(
        function=name.str.extract(REGION, 1).cast(pl.Int64), version=name.str.extract(REGION, 2)
    )
    ran = regions.group_by("rank", "function").agg(
        versions=pl.col("version").n_unique().cast(pl.Int64),
        count=pl.len().cast(pl.Int64),
        total_ns=pl.col("duration_ns").sum(),
    )
    compiled = rows.filter(name.str.contains(f"{REGION}|{_OTHER}")).select("rank", "start_ns", ran_ns="start_ns")
    passes = rows.filter(name.str.contains(_COMPILED)).with_columns(end_ns=pl.col("start_ns") + pl.col("duration_ns"))
    # the next that ran after the pass began
    following = passes.sort("start_ns").join_asof(
        compiled.sort("start_ns"), on="start_ns", by="rank", strategy="forward", check_sortedness=False
    )
    without = following.filter((pl.col("ran_ns") > pl.col("end_ns")).fill_null(True)).group_by("rank").agg(
        function=pl.lit(None, pl.Int64),
        versions=pl.lit(0, pl.Int64),
        count=pl.len().cast(pl.Int64),
        total_ns=pl.col("duration_ns").sum(),
    )  # fmt: skip
    return (
        pl.concat([ran, without])
        .join(counted, on="rank")
        .with_columns(per_step=pl.col("count") / pl.col("steps"))
        .sort("rank", "function", nulls_last=True)
        .select(column.name for column in COLUMNS)
    )
