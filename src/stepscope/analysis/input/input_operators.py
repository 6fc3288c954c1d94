"""Which operator slows a dataset pipeline down, from the fill of its queues and the CPU use of its operators."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.pipeline_graph import LIMITS, Limits, Node, bottlenecks, observations
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import HOST_USAGE, INPUT_PIPELINE
from stepscope.tables.base import Column, schema_of

JUDGED = ("depth", "children", "bottleneck", "chain", "observations")
"""The columns that follow from a whole pipeline."""

NOT_SAMPLED = "the queues of dataset operators were not sampled"

COLUMNS = columns(
    "rank",
    Column("pipeline", "int32", "Number of the pipeline, from 0.", importance=28),
    "operator",
    Column("number", "int32", "Number of the operator in its pipeline.", importance=15),
    meaning("type", "Type, e.g. `Map`."),
    Column("depth", "int32", "Distance from the root.", importance=16),
    Column("parent", "string", "Operator that takes its output; null for the root.", importance=21),
    Column("children", "list[string]", "Operators that provide its input.", importance=20),
    "workers queue_capacity samples mean_size",
    Column("usage_ratio", "float64", "`mean_size` over `queue_capacity`; null if there is no queue."),
    meaning("empty_ratio", "Share of samples with an empty queue."),
    Column("sample_interval_ns", "int64", "Time between samples."),
    Column("processors", "float64", "Mean number of processors that it kept busy; null if not sampled."),
    "processors_per_worker",
    Column("cpu_share_ratio", "float64", "Its share of the CPU time of all operators.", importance=17),
    Column("bottleneck", "bool", "True if it slows the pipeline down."),
    Column("chain", "string", "Bottlenecks from the readers to the root, joined by `/`; null if there are none."),
    Column(
        "observations",
        "list[string]",
        "Observations by MindSpore's own limits, e.g. `workers overloaded`.",
        importance=22,
    ),
    keep="operator bottleneck usage_ratio processors empty_ratio workers mean_size type",
)


@analysis("rank", COLUMNS, together=True)
def input_operators(
    pipeline_operators: pl.LazyFrame,
    input_pipeline: pl.LazyFrame | None,
    host_usage: pl.LazyFrame | None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Describe each dataset operator and mark the bottlenecks: one row per operator, the root first."""
    listed = pipeline_operators.drop("parameters").collect()
    total = pl.col("processors").sum().over("rank", "pipeline")
    rows = (
        listed.join(_queues(input_pipeline), on=["rank", "operator"], how="left", maintain_order="left")
        .join(_cpu(host_usage), on=["rank", "operator"], how="left", maintain_order="left")
        .with_columns(
            usage_ratio=pl.when(pl.col("queue_capacity") > 0).then(pl.col("mean_size") / pl.col("queue_capacity")),
            processors_per_worker=pl.col("processors") / pl.col("workers").clip(1),
            cpu_share_ratio=pl.when(total > 0).then(pl.col("processors") / total),
        )
    )
    ordered = rows.sort("rank", "pipeline", "number", "operator", nulls_last=True)
    found = _judged(ordered, limits).select(names(COLUMNS))
    return found.sort("rank", "pipeline", "depth", "number", "operator", nulls_last=True, maintain_order=True)


@analysis(
    "rank",
    columns(
        "rank operator",
        Column("sample", "int64", "Number of the sample, from 0."),
        "step time_ns queue_size queue_capacity",
        keep="operator sample",
    ),
    together=True,
    nothing=NOT_SAMPLED,
)
def input_samples(input_pipeline: pl.LazyFrame) -> pl.DataFrame:
    """List the samples of the operators' output queues, by operator and time.

    Raises:
        Unavailable: If no queue was sampled.
    """
    found = (
        input_pipeline.filter(pl.col("batch").is_null() & pl.col("queue_size").is_not_null())
        .sort("rank", "operator", "time_ns", maintain_order=True)
        .with_columns(sample=pl.int_range(pl.len()).over("rank", "operator"))
        .select("rank", "operator", "sample", "step", "time_ns", "queue_size", "queue_capacity")
        .collect()
    )
    if found.is_empty():
        raise Unavailable(NOT_SAMPLED)
    return found


def _queues(samples: pl.LazyFrame | None) -> pl.DataFrame:
    """Mean size and emptiness of each operator's queue."""
    size = pl.col("queue_size")
    queues = (
        INPUT_PIPELINE.or_empty(samples)
        .filter(pl.col("batch").is_null() & size.is_not_null())
        .group_by("rank", "operator")
    )
    return queues.agg(samples=pl.len().cast(pl.Int64), mean_size=size.mean(), empty_ratio=(size == 0).mean()).collect()


def _cpu(usage: pl.LazyFrame | None) -> pl.DataFrame:
    """Mean processors that each operator kept busy, and the number of samples behind it."""
    user, system = pl.col("user_ratio"), pl.col("system_ratio")
    busy = (user.fill_null(0) + system.fill_null(0)) * pl.col("processors")
    known = HOST_USAGE.or_empty(usage).filter(
        (pl.col("scope") == "operator") & (user.is_not_null() | system.is_not_null())
    )
    # the mean of a list is the same to the last digit whichever ranks are computed together
    samples = known.group_by("rank", operator=pl.col("name"), maintain_order=True).agg(busy=busy)
    busy_samples = pl.col("busy").list
    return samples.select(
        "rank", "operator", processors=busy_samples.mean(), cpu_samples=busy_samples.len().cast(pl.Int64)
    ).collect()


def _judged(rows: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """Pipelines, one after the other, with the columns of `JUDGED`."""
    found: list[tuple[Any, ...]] = []
    for _, pipeline in groupby(rows.iter_rows(named=True), key=itemgetter("rank", "pipeline")):
        nodes = _nodes(list(pipeline), limits)
        slow = bottlenecks(nodes, limits)
        chain = "/".join(slow) or None
        found += (
            (node.depth, list(node.children), node.name in slow, chain, observations(node, nodes, limits))
            for node in nodes
        )
    schema = {name: dtype for name, dtype in schema_of(COLUMNS).items() if name in JUDGED}
    return rows.with_columns(pl.DataFrame(found, schema=schema, orient="row"))


def _nodes(rows: list[dict[str, Any]], limits: Limits) -> list[Node]:
    parents = {row["operator"]: row["parent"] for row in rows}
    return [
        Node(
            name=row["operator"],
            kind=row["type"].removesuffix("Op"),
            number=row["number"] if row["number"] is not None else place,
            workers=row["workers"],
            usage=row["usage_ratio"],
            empty=row["empty_ratio"],
            worker_cpu=row["processors_per_worker"] if (row["cpu_samples"] or 0) >= limits.min_cpu_samples else None,
            children=tuple(name for name, parent in parents.items() if parent == row["operator"]),
            depth=_depth(row["operator"], parents),
        )
        for place, row in enumerate(rows)
    ]


def _depth(name: str, parents: Mapping[str, str | None]) -> int:
    """Distance to the root. A damaged file may link operators in a cycle, which is cut where it closes."""
    seen = {name}
    while (above := parents.get(name)) is not None and above not in seen:
        seen.add(above)
        name = above
    return len(seen) - 1
