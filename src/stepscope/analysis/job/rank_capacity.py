"""FLOPs and memory of all ranks side by side: how evenly the work lies on the devices of a job."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.places import PLACE, of_stages, placed
from stepscope.analysis.registry import analysis
from stepscope.selection import Choice
from stepscope.tables.base import Column

FLOPS = columns(
    "rank",
    *PLACE,
    Column("step_flops", "float64", "FLOPs of one step; null if no steps are known.", title="FLOPs per {step}"),
    Column("recorded_flops", "float64", "FLOPs of all recorded calls.", title="FLOPs in total"),
    Column(
        "of_most_ratio", "float64", "FLOPs over those of the rank with the most: 1 on that rank.", title="of the most"
    ),
    "flops_per_s",
    Column("step_flops_per_s", "float64", "FLOPs of a step over its length.", title="rate over {the_step}"),
    Column("peak_flops_per_s", "float64", "Peak rate of the device; null if unknown.", title="peak rate"),
    Column("utilization_ratio", "float64", "`flops_per_s` over the peak.", title="of peak while busy"),
    Column("mfu_ratio", "float64", "`step_flops_per_s` over the peak.", title="of peak (MFU)"),
    Column("stated_utilization_ratio", "float64", "Utilization as stated; no file defines it.", title="stated share"),
    "found_by",
    keep="rank step_flops of_most_ratio flops_per_s mfu_ratio utilization_ratio recorded_flops stage",
    titles={"flops_per_s": "rate while busy"},
)

MEMORY = columns(
    "rank",
    *PLACE,
    Column("component", "string", "Allocator as recorded; null for the framework's own."),
    Column("peak_bytes", "int64", "Highest point of the memory curve.", title="peak"),
    Column("stated_peak_bytes", "int64", "Peak as the source states it.", title="stated peak"),
    Column("reserved_peak_bytes", "int64", "Most memory reserved by the allocator.", title="reserved"),
    Column("capacity_bytes", "int64", "Memory of the device; null if unknown.", title="capacity"),
    Column("used_ratio", "float64", "Highest of the three over the capacity.", title="used"),
    Column(
        "of_most_ratio", "float64", "Highest of the three over that of the rank with the most.", title="of the most"
    ),
    keep="rank peak_bytes stated_peak_bytes used_ratio of_most_ratio capacity_bytes stage",
)


@analysis("job", FLOPS, whole_job=True)
def rank_flops(
    model_flops: pl.DataFrame,
    ranks: pl.LazyFrame | None = None,
    groups: pl.LazyFrame | None = None,
    parallel_layout: pl.DataFrame | None = None,
    stage: Choice = None,
) -> pl.DataFrame:
    """Put the FLOPs of all ranks side by side (`model_flops`): one row per rank.

    Args:
        stage: Only ranks of these pipeline stages, e.g. `0` or `1-2`.
    """
    of = pl.col("step_flops" if _all_known(model_flops, "step_flops") else "recorded_flops")
    rows = model_flops.with_columns(
        of_most_ratio=pl.when(of.max() > 0).then(of / of.max()),
        stated_utilization_ratio="stated_flops_utilization_ratio",
    )
    found = of_stages(placed(rows, ranks, groups, parallel_layout), stage)
    return found.select(names(FLOPS)).sort("rank")


def _all_known(rows: pl.DataFrame, column: str) -> bool:
    return rows[column].null_count() == 0


@analysis("job", MEMORY, whole_job=True)
def rank_memory(
    memory_peak: pl.DataFrame,
    ranks: pl.LazyFrame | None = None,
    groups: pl.LazyFrame | None = None,
    parallel_layout: pl.DataFrame | None = None,
    stage: Choice = None,
) -> pl.DataFrame:
    """Put the peak memory of all ranks side by side: one row per rank, of its curve that comes closest to the capacity.

    Memory of a device goes before that of the host.

    Args:
        stage: Only ranks of these pipeline stages, e.g. `0` or `1-2`.
    """
    on_host = pl.col("device").is_null() & pl.col("graph").is_null()
    highest = pl.max_horizontal("peak_bytes", "stated_peak_bytes", "reserved_peak_bytes")
    rows = (
        memory_peak.with_columns(highest=highest, on_host=on_host)
        .sort(
            *("rank", "on_host", "used_ratio", "highest", "peak_bytes", "component"),
            descending=[False, False, True, True, True, False],
            nulls_last=True,
        )
        .unique("rank", keep="first", maintain_order=True)
        .with_columns(
            of_most_ratio=pl.when(pl.col("highest").max() > 0).then(pl.col("highest") / pl.col("highest").max())
        )
    )
    found = of_stages(placed(rows, ranks, groups, parallel_layout), stage)
    return found.select(names(MEMORY)).sort("rank")
