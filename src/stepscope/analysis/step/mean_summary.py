"""The mean step by class of work: of each rank, and of the job."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.statistics import rounded, share_of, sum_known
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.overall_summary import COLUMNS, PARTS
from stepscope.tables.base import Column

_PART = tuple(column for column in COLUMNS if column.name in ("group", "part"))
_MEAN = (
    Column("mean_ns", "int64", "Its mean time in a step; the parts add up to the mean step."),
    Column("share_ratio", "float64", "Share of the mean step.", title="share"),
    Column(
        "kernel_ns",
        "int64",
        "Sum of its kernels in a step, also of those that run at once; null for idle time.",
        title="kernel time",
    ),
    Column("kernels", "float64", "Number of its kernels in a step; null for idle time and waiting.", importance=60),
)

RANK_COLUMNS = columns(
    "rank",
    *_PART,
    *_MEAN,
    meaning("steps", "Number of steps averaged."),
    nulls="kernel_ns kernels",
)


@analysis("rank", RANK_COLUMNS, together=True)
def rank_summaries(overall_summary: pl.DataFrame, time_by_rank: pl.DataFrame) -> pl.DataFrame:
    """Average `overall_summary` over the steps that `time_by_rank` averages."""
    known = time_by_rank.select("rank", "steps", "left_out_step")
    rows = overall_summary.join(known, on="rank").filter(pl.col("step").ne_missing(pl.col("left_out_step")))
    steps = pl.col("steps").first()
    means = rows.group_by("rank", "group", "part").agg(
        mean_ns=rounded(pl.col("length_ns").sum() / steps),
        kernel_ns=rounded(sum_known("kernel_ns") / steps),
        kernels=sum_known("count") / steps,
        steps=steps,
    )
    shared = means.with_columns(share_ratio=share_of(pl.col("mean_ns"), "rank"))
    return shared.sort("rank", _place()).select(names(RANK_COLUMNS))


MEAN_COLUMNS = columns(
    *_PART,
    *_MEAN,
    Column("max_rank", "int32", "Rank with most of it; of several, the lowest.", title="most on"),
    Column("max_ns", "int64", "How much that is.", title="most"),
    nulls="kernel_ns kernels",
)


@analysis("job", MEAN_COLUMNS)
def mean_summary(rank_summaries: pl.DataFrame) -> pl.DataFrame:
    """Average `rank_summaries` over all steps of all ranks; a rank without a part has 0 of it."""
    steps = rank_summaries.unique("rank")["steps"].sum()
    weighed = rank_summaries.with_columns(
        pl.col("mean_ns", "kernel_ns", "kernels") * pl.col("steps") / max(steps, 1), most="mean_ns"
    )
    means = (
        weighed.sort(-pl.col("most"), "rank")
        .group_by("group", "part", maintain_order=True)
        .agg(
            mean_ns=rounded(pl.col("mean_ns").sum()),
            kernel_ns=rounded(sum_known("kernel_ns")),
            kernels=sum_known("kernels"),
            max_rank=pl.col("rank").first(),
            max_ns=pl.col("most").first(),
        )
    )
    total = pl.col("mean_ns").sum()
    shares = pl.when(total > 0).then(pl.col("mean_ns") / total).otherwise(0.0)
    return means.with_columns(share_ratio=shares).sort(_place()).select(names(MEAN_COLUMNS))


def _place() -> pl.Expr:
    return pl.col("part").replace_strict(list(PARTS), range(len(PARTS)), return_dtype=pl.Int32)
