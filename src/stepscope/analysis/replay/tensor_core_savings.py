"""What the job would save if products of matrices that run beside the tensor cores ran on them, by replay."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.device.tensor_cores import REASONS
from stepscope.analysis.flops.model_flops import peak_of
from stepscope.analysis.methods.job_graph import JobGraph
from stepscope.analysis.registry import Prepared, analysis
from stepscope.analysis.replay.replay import Shortened
from stepscope.tables.base import Column, schema_of

HALVED = 2.0
"""How much faster a kernel is that moves numbers of half the size, if memory limits it."""

COLUMNS = columns(
    Column("reason", "string", "Why they do not run on tensor cores, see `tensor_cores`.", values=REASONS),
    Column("saving_ns", "int64", "What the mean step would be shorter if these kernels took half the time."),
    Column(
        "saving_high_ns",
        "int64",
        "The same if they were faster by the ratio of the device's peaks: an upper bound; by half if that is unknown.",
    ),
    Column("factor", "float64", "Ratio of the device's published peaks; null if unknown.", title="peak ratio"),
    Column("error_ratio", "float64", "How far a replay of the recording without changes is from it."),
    nulls="factor",
)


class _Reason(NamedTuple):
    """The kernels that one reason keeps from tensor cores."""

    name: str
    kernels: pl.DataFrame
    factor: float | None


@analysis("job", COLUMNS, whole_job=True)
def tensor_core_savings(
    tensor_cores: pl.DataFrame,
    ranks: pl.LazyFrame,
    work_graph: Prepared[JobGraph],
) -> pl.DataFrame:
    """Replay the job with shorter kernels, as they might be on tensor cores: one row per reason, in order.

    Half precision halves the bytes, so half the time is what even kernels gain that memory limits; the ratio of the
    peaks is the most that those gain which computing limits. What the device then waits for its host for saves nothing.

    Raises:
        Unavailable: If no work lies in a step.
    """
    reasons = _reasons(tensor_cores, ranks)
    if not reasons:
        return pl.DataFrame(schema=schema_of(COLUMNS))
    graph = work_graph()
    job = Shortened(graph)
    rows = []
    for reason in reasons:
        named = graph.nodes.select("rank", "name").join(
            reason.kernels, on=["rank", "name"], how="left", maintain_order="left"
        )
        share = named["share"].fill_null(0.0)

        def saved(factor: float, share: pl.Series = share) -> int:
            return job.saving_ns((job.now_ns * (1 - share * (1 - 1 / factor))).round().cast(pl.Int64))

        usual = saved(min(HALVED, reason.factor or HALVED))
        rows.append(
            {
                "reason": reason.name,
                "saving_ns": usual,
                "saving_high_ns": max(usual, saved(reason.factor or HALVED)),
                "factor": reason.factor,
                "error_ratio": job.error_ratio,
            }
        )
    return pl.DataFrame(rows, schema=schema_of(COLUMNS)).select(names(COLUMNS))


def _reasons(cores: pl.DataFrame, ranks: pl.LazyFrame) -> list[_Reason]:
    """The kernels of each reason: `rank`, `name`, and which share of the kernels of that name it is about."""
    devices = dict(ranks.select("rank", "device_name").sort("rank").collect().iter_rows())
    every = cores.group_by("rank", "name").agg(every=pl.col("total_ns").sum())
    found = []
    for reason in REASONS:
        rows = cores.filter(pl.col("reason") == reason)
        if rows.is_empty():
            continue
        shares = (
            rows.group_by("rank", "name")
            .agg(own=pl.col("total_ns").sum())
            .join(every, on=["rank", "name"])
            .select("rank", "name", share=pl.when(pl.col("every") > 0).then(pl.col("own") / pl.col("every")))
        )
        factors = [_factor(devices.get(rank)) for rank in sorted(set(rows["rank"]))]
        known = [factor for factor in factors if factor is not None]
        found.append(_Reason(reason, shares, min(known) if len(known) == len(factors) else None))
    return found


def _factor(device: str | None) -> float | None:
    """Peak of a device in half precision over that in single precision."""
    half, single = peak_of(device, "half"), peak_of(device, "float")
    return half / single if half and single else None
