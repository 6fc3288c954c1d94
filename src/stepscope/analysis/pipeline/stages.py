"""What each pipeline stage does and waits for: by step, and over all steps with operators, memory and FLOPs."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.job.rank_steps import without_start_up
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.rank_lists import as_rank_list
from stepscope.analysis.registry import analysis
from stepscope.tables import KERNELS
from stepscope.tables.base import Column

_STAGE = Column("stage", "int32", "Pipeline stage, from 0.", nullable=False, importance=99)
_RANKS = Column("ranks", "string", "Its recorded ranks.", nullable=False, importance=80)
_WINDOW = Column(
    "window_ns", "int64", "Length of the step's window, mean of its ranks.", title="{step_time}", importance=78
)
_WORK = Column(
    "work_ns",
    "int64",
    "Computing of its median rank (of an even number the lower one), so that a slow rank does not count as work of the "
    "stage; of step tables without it, all but exposed communication.",
    title="computing",
    importance=95,
)
_FACTOR = Column(
    "work_factor", "float64", "`work_ns` over the mean of all recorded stages.", title="of mean stage", importance=94
)
_BUBBLE = Column("bubble_ns", "int64", "Waiting for other stages, mean of its ranks.", title="bubble", importance=92)
_RATIO = Column("bubble_ratio", "float64", "The same over the step.", title="bubble %", importance=93)
_BY = Column(
    "bubble_by", "string", "How it is known, as in `pipeline_bubbles`; `mixed` if that differs.", importance=40
)

STEP_COLUMNS = columns(
    "step", _STAGE, _RANKS, _WINDOW, _WORK, _FACTOR, _BUBBLE, _RATIO, _BY,
    nulls="step window_ns work_ns work_factor bubble_ns bubble_ratio bubble_by",
)  # fmt: skip

COLUMNS = columns(
    _STAGE,
    _RANKS,
    Column("missing", "int64", "Ranks of the stage that were not recorded."),
    _WINDOW,
    _WORK,
    _FACTOR,
    _BUBBLE,
    _RATIO,
    _BY,
    Column("recorded_bubble_ns", "int64", "Waiting for other stages as the source states it, mean of its ranks."),
    Column("operators", "int64", "Kernels that compute in a step, mean of its ranks.", title="kernels", importance=60),
    Column("step_flops", "float64", "FLOPs of a step, mean of its ranks.", title="FLOPs", importance=70),
    Column("flops_per_s", "float64", "Rate of its operators, mean of its ranks."),
    Column("peak_bytes", "int64", "Highest memory in use on any of its ranks.", title="peak memory", importance=72),
    Column("capacity_bytes", "int64", "Memory of their devices."),
    Column("steps", "int64", "Number of steps averaged."),
    Column(
        "left_out", "int64", "Steps that are left out as start-up (`left_out_steps`) of any rank, on all its ranks."
    ),
    nulls="window_ns work_ns work_factor bubble_ns bubble_ratio bubble_by recorded_bubble_ns operators step_flops "
    "flops_per_s peak_bytes capacity_bytes",
)

_BETWEEN = ", "
_MEANS = ["window_ns", "work_ns", "bubble_ns"]


@analysis("job", STEP_COLUMNS, whole_job=True)
def pipeline_steps(pipeline_bubbles: pl.DataFrame) -> pl.DataFrame:
    """Average over the ranks of each stage in each step: one row per step and stage, in order."""
    rows = pipeline_bubbles.group_by("step", "stage").agg(*_averages())
    return _compared(rows, ["step"]).select(names(STEP_COLUMNS)).sort("step", "stage")


@analysis("job", COLUMNS, whole_job=True)
def pipeline_stages(
    pipeline_bubbles: pl.DataFrame,
    pipeline_places: pl.DataFrame,
    model_flops: pl.DataFrame | None = None,
    memory_peak: pl.DataFrame | None = None,
    kernels: pl.LazyFrame | None = None,
    left_out_steps: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Average over the ranks and steps of each stage: one row per stage with recorded ranks, in order.

    First steps that do not count on some rank (`left_out_steps`) are left out of all ranks, as these wait for one
    another.
    """
    kept = without_start_up(pipeline_bubbles, left_out_steps)
    by_rank = kept.group_by("stage", "rank").agg(
        *(pl.col(name).mean() for name in [*_MEANS, "recorded_bubble_ns"]),
        pl.col("bubble_by").drop_nulls().unique().sort().str.join(_BETWEEN),
        steps=pl.len().cast(pl.Int64),
    )
    found = by_rank.group_by("stage").agg(
        *_averages(),
        rounded(pl.col("recorded_bubble_ns").mean()).alias("recorded_bubble_ns"),
        pl.col("steps").max(),
    )
    everywhere = pipeline_places.group_by("stage").agg(everyone=pl.len().cast(pl.Int64))
    counts = pipeline_bubbles.group_by("stage").agg(there=pl.col("rank").n_unique().cast(pl.Int64), rows=pl.len())
    used = kept.group_by("stage").agg(used=pl.len())
    rows = found.join(everywhere, on="stage").join(counts, on="stage").join(used, on="stage")
    resources = _resources(kept.select("rank", "stage").unique(), model_flops, memory_peak, _per_step(kernels, kept))
    rows = rows.join(resources, on="stage", how="left").with_columns(
        missing=pl.col("everyone") - pl.col("there"), left_out=(pl.col("rows") - pl.col("used")).cast(pl.Int64)
    )
    return _compared(rows, []).select(names(COLUMNS)).sort("stage")


def _averages() -> list[pl.Expr]:
    """Of rows of a stage's ranks; a slow rank does not make the work of its stage longer."""
    ways = pl.col("bubble_by").replace("", None).drop_nulls().unique()
    lower = pl.col("work_ns").quantile(0.5, "lower")
    return [
        as_rank_list(pl.col("rank")).alias("ranks"),
        *(rounded(pl.col(name).mean()).alias(name) for name in ("window_ns", "bubble_ns")),
        rounded(lower).alias("work_ns"),
        pl.when((ways.len() > 1) | ways.first().str.contains(_BETWEEN, literal=True))
        .then(pl.lit("mixed"))
        .otherwise(ways.first())
        .alias("bubble_by"),
    ]


def _compared(rows: pl.DataFrame, among: list[str]) -> pl.DataFrame:
    """Stages with their share of waiting, and their work over that of the mean stage."""
    mean = pl.col("work_ns").mean()
    mean = mean.over(among) if among else mean
    several = (pl.len().over(among) if among else pl.len()) > 1
    return rows.with_columns(
        bubble_ratio=pl.when(pl.col("window_ns") > 0).then(pl.col("bubble_ns") / pl.col("window_ns")),
        work_factor=pl.when(several & (mean > 0)).then(pl.col("work_ns") / mean),
    )


def _per_step(kernels: pl.LazyFrame | None, kept: pl.DataFrame) -> pl.DataFrame:
    """Kernels of a rank that compute in a step, in the mean of the averaged steps."""
    computing = KERNELS.or_empty(kernels).filter((pl.col("kind") == "compute") & pl.col("step").is_not_null())
    counted = computing.group_by("rank", "step").len("operators").collect(engine="streaming")
    return counted.join(kept, on=["rank", "step"], how="semi").group_by("rank").agg(pl.col("operators").mean())


def _resources(
    ranks: pl.DataFrame, flops: pl.DataFrame | None, memory: pl.DataFrame | None, operators: pl.DataFrame
) -> pl.DataFrame:
    """Operators, FLOPs and memory by stage."""
    rows = ranks.join(operators, on="rank", how="left")
    stated = ["rank", "step_flops", "flops_per_s"]
    known = pl.DataFrame(schema=dict.fromkeys(stated, pl.Float64)) if flops is None else flops.select(stated)
    rows = rows.join(known.with_columns(pl.col("rank").cast(pl.Int32)), on="rank", how="left")
    sizes = {"rank": pl.Int32, "peak_bytes": pl.Int64, "capacity_bytes": pl.Int64}
    peaks = pl.DataFrame(schema=sizes)
    if memory is not None:
        stated_peak = pl.max_horizontal("peak_bytes", "stated_peak_bytes")
        on_device = memory.filter(pl.col("device").is_not_null() | pl.col("graph").is_not_null())
        peaks = on_device.group_by("rank").agg(
            peak_bytes=stated_peak.max(), capacity_bytes=pl.col("capacity_bytes").max()
        )
    rows = rows.join(peaks, on="rank", how="left")
    return rows.group_by("stage").agg(
        rounded(pl.col("operators").mean()).alias("operators"),
        pl.col("step_flops", "flops_per_s").mean(),
        pl.col("peak_bytes", "capacity_bytes").max(),
    )
