"""What the job would save if operators made better use of its devices, by replay."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.device.operator_efficiency import decided
from stepscope.analysis.device.operator_work import KEYS
from stepscope.analysis.methods.job_graph import JobGraph
from stepscope.analysis.registry import Prepared, analysis
from stepscope.analysis.replay.replay import Shortened
from stepscope.tables.base import Column, schema_of

ITEMS = ("ai_cpu", "clock", "blocks", "cube", "attention", "vector", "bound")
"""What could be better: no operators on the AI CPU, full clock, even blocks, matrix products, attention and vector
operators at the limits of their pipes, other operators at those of any pipe. One operator counts to the first."""

COLUMNS = columns(
    Column("item", "string", "What could be better, see the answers about operators.", values=ITEMS),
    Column("saving_ns", "int64", "What the mean step would be shorter at most."),
    Column("saving_ratio", "float64", "The same as a share of the mean step."),
    Column("error_ratio", "float64", "How far a replay of the recording without changes is from it."),
    nulls="",
)

_NODE = ["rank", "step", "name"]


@analysis("job", COLUMNS, whole_job=True)
def operator_savings(
    work_graph: Prepared[JobGraph],
    operator_work: pl.DataFrame,
    ai_cpu_operators: pl.DataFrame | None = None,
    throttled_operators: pl.DataFrame | None = None,
    block_dims: pl.DataFrame | None = None,
    operator_efficiency: pl.DataFrame | None = None,
    operator_bounds: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Replay the job with shorter kernels, one item after the other: one row per item that says anything, in order.

    What other work hides, and what the device then waits for its host or for other ranks, saves nothing.

    Raises:
        Unavailable: If no work lies in a step.
    """
    every = operator_work.group_by("rank", "name").agg(every=pl.col("total_ns").sum())
    shares = _shares(every, ai_cpu_operators, throttled_operators, block_dims, operator_efficiency, operator_bounds)
    if not shares:
        return pl.DataFrame(schema=schema_of(COLUMNS))
    graph = work_graph()
    job = Shortened(graph)
    rows = []
    for item, own in shares.items():
        by = [name for name in _NODE if name in own.columns]
        share = graph.nodes.select(_NODE).join(own, on=by, how="left", maintain_order="left")["share"].fill_null(0.0)
        rows.append(job.row(item, (job.now_ns * (1 - share.clip(0.0, 1.0))).round().cast(pl.Int64)))
    return pl.DataFrame(rows, schema=schema_of(COLUMNS)).select(names(COLUMNS))


def _shares(
    every: pl.DataFrame,
    ai_cpu: pl.DataFrame | None,
    throttled: pl.DataFrame | None,
    blocks: pl.DataFrame | None,
    efficiency: pl.DataFrame | None,
    bounds: pl.DataFrame | None,
) -> dict[str, pl.DataFrame]:
    """By item, which share of the kernels of a name (and step) would be saved."""
    found: dict[str, pl.DataFrame] = {}
    if ai_cpu is not None and ai_cpu.height:
        found["ai_cpu"] = _share(ai_cpu.select("rank", "name", saved="total_ns"), every)
    if throttled is not None and throttled.height:
        sums = throttled.group_by(_NODE).agg(pl.col("lost_ns", "total_ns").sum())
        found["clock"] = sums.select(*_NODE, share=pl.col("lost_ns") / pl.col("total_ns"))
    taken: list[pl.DataFrame] = []
    if blocks is not None:
        uneven = blocks.filter("uneven")
        found["blocks"] = _share(uneven.select("rank", "name", saved="idle_ns"), every)
        taken.append(uneven.select(KEYS))
    if efficiency is not None:
        judged = efficiency.filter(pl.col("space_ns") > 0)
        left = _without(judged, taken)
        for unit in ("cube", "attention", "vector"):
            found[unit] = _share(left.filter(pl.col("unit") == unit).select("rank", "name", saved="space_ns"), every)
        taken.append(decided(efficiency))
    if bounds is not None:
        left = _without(bounds.filter("unbound"), taken)
        found["bound"] = _share(left.select("rank", "name", saved="space_ns"), every)
    return {item: own for item, own in found.items() if own.height}


def _without(rows: pl.DataFrame, taken: list[pl.DataFrame]) -> pl.DataFrame:
    """The rows of operators that no earlier item is about."""
    return rows.join(pl.concat(taken), on=KEYS, how="anti", nulls_equal=True) if taken else rows


def _share(saved: pl.DataFrame, every: pl.DataFrame) -> pl.DataFrame:
    """What is saved of all kernels of a name."""
    sums = saved.group_by("rank", "name").agg(pl.col("saved").sum()).join(every, on=["rank", "name"])
    known = sums.filter((pl.col("every") > 0) & (pl.col("saved") > 0))
    return known.select("rank", "name", share=pl.col("saved") / pl.col("every")).sort("rank", "name")
