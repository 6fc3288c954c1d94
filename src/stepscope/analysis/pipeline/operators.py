"""Which types of operators each pipeline stage runs, beside the others."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.rank_lists import as_rank_list
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column

COLUMNS = columns(
    Column("stage", "int32", "Pipeline stage, from 0.", nullable=False, importance=90),
    "unit",
    Column("type", "string", "Operator type.", nullable=False, importance=88),
    Column("ranks", "string", "Recorded ranks of the stage that run it.", nullable=False),
    Column("calls", "int64", "Calls in the recording, mean of these ranks.", importance=60),
    Column("total_ns", "int64", "Their time, mean of these ranks.", importance=80),
    Column("share_ratio", "float64", "Share of the time of the stage's list.", title="share", importance=75),
    Column("others_ns", "int64", "Time on the mean rank of the other stages.", importance=70),
    Column("only", "bool", "Whether no other recorded stage runs it.", importance=65),
    nulls="unit share_ratio others_ns only",
)


@analysis("job", COLUMNS, whole_job=True)
def stage_operators(operator_types: pl.DataFrame, pipeline_places: pl.DataFrame) -> pl.DataFrame:
    """Compare the stages by type of operator: one row per stage, list and type, longest first in each stage."""
    here = pipeline_places.filter("recorded").select("rank", "stage")
    rows = operator_types.join(here, on="rank")
    among = ["unit", "type"]
    found = rows.group_by("stage", *among).agg(
        as_rank_list(pl.col("rank")).alias("ranks"),
        rounded(pl.col("count").mean()).alias("calls"),
        rounded(pl.col("total_ns").mean()).alias("total_ns"),
        total=pl.col("total_ns").sum(),
    )
    lists = rows.group_by("stage", "unit").agg(whole=pl.col("total_ns").sum())
    sizes = rows.group_by("stage").agg(size=pl.col("rank").n_unique())
    joined = found.join(lists, on=["stage", "unit"], nulls_equal=True).join(sizes, on="stage")
    everyone = sizes["size"].sum()
    all_ns, stages = pl.col("total").sum().over(among), pl.len().over(among)
    rest = pl.lit(everyone) - pl.col("size")
    return (
        joined.with_columns(
            share_ratio=pl.when(pl.col("whole") > 0).then(pl.col("total") / pl.col("whole")),
            others_ns=pl.when(rest > 0).then(rounded((all_ns - pl.col("total")) / rest)),
            only=pl.when(rest > 0).then(stages == 1),
        )
        .select(names(COLUMNS))
        .sort("stage", "unit", -pl.col("total_ns"), "type", nulls_last=True)
    )
