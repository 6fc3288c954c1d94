"""Which operators of the dataset pipeline hold it up, and what helps with their kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from stepscope.advice.base import Finding, rule
from stepscope.advice.ranks import named, place
from stepscope.analysis.input.input_stages import HEALTHY, PROCESSING
from stepscope.analysis.methods.pipeline_graph import IDLE, LIMITS

ACTIONS = {
    "reader": "Raise num_parallel_workers of the reader, and read fewer, larger files from faster storage.",
    "generator": (
        "Raise num_parallel_workers of the GeneratorDataset, make its Python code cheaper, or write the data set to "
        "MindRecord once and read that."
    ),
    "map": (
        "Raise num_parallel_workers of the map, or replace its Python operators by those of the framework; "
        "python_multiprocessing=True keeps Python ones out of each other's way."
    ),
    "batch": "Raise prefetch_size (mindspore.dataset.config), and num_parallel_workers of the batch.",
    "other": "Raise prefetch_size and the workers of the operator, and see whether it can come later in the pipeline.",
}
"""Kind of operator to what helps with it, as the performance guide of MindSpore has it."""

_KINDS = {"Generator": "generator", "Map": "map", "Batch": "batch", "BucketBatchByLength": "batch"}


@rule("pipeline-bottleneck")
def pipeline_bottleneck(input_operators: pl.DataFrame, input_stages: pl.DataFrame | None) -> Iterator[Finding]:
    """Report the operators that `input_operators` marks, one finding for the same operators of a kind on all ranks.

    Where the host queue shows that batches come in time, the slowest operator costs nothing, and nothing is said; nor
    where queues were sampled once, at the start, when all are empty. The saving is that of `host-queue`, which tells
    how long training waits.
    """
    healthy: list[int] = []
    if input_stages is not None:
        of_processing = (pl.col("stage") == PROCESSING) & (pl.col("verdict") == HEALTHY)
        healthy = input_stages.filter(of_processing)["rank"].to_list()
    slow = (
        input_operators.filter(pl.col("samples").max().over("rank", "pipeline") > 1)
        .filter(pl.col("bottleneck") & ~pl.col("rank").is_in(healthy))
        .with_columns(kind=_kind())
        .join(_input_usage(input_operators), on=["rank", "pipeline", "operator"], how="left", maintain_order="left")
    )
    ordered = slow.sort("rank", "depth", "number", descending=[False, True, True])
    named_alike = pl.col("operator").str.join("/").over("rank", "kind")
    alike = ordered.with_columns(names=named_alike).partition_by("kind", "names", as_dict=True, maintain_order=True)
    for (kind, _), part in alike.items():
        yield _finding(str(kind), part)


def _kind() -> pl.Expr:
    bare = pl.col("type").str.strip_suffix("Op")
    reads = pl.col("children").list.len() == 0
    known = bare.replace_strict(list(_KINDS), list(_KINDS.values()), default=None, return_dtype=pl.String)
    return pl.coalesce(known, pl.when(reads).then(pl.lit("reader")), pl.lit("other"))


def _input_usage(operators: pl.DataFrame) -> pl.DataFrame:
    """How full the fullest queue before each operator is, for those that take from one."""
    return operators.group_by("rank", "pipeline", operator="parent").agg(input_usage=pl.col("usage_ratio").max())


def _finding(kind: str, rows: pl.DataFrame) -> Finding:
    ranks = rows["rank"].to_list()
    names = rows["operator"].unique(maintain_order=True).to_list()
    first = rows.row(0, named=True)
    return Finding(
        rule="pipeline-bottleneck",
        summary=(
            f"{named(ranks, 'has', 'have')} a dataset pipeline that {'/'.join(names)} "
            f"{'holds' if len(names) == 1 else 'hold'} up."
        ),
        cause=_why(first),
        action=ACTIONS[kind],
        saving_ns=0,
        saving_ratio=0.0,
        where={**place(ranks), "operators": names},
        evidence={
            "kind": kind,
            "chain": first["chain"],
            "usage": dict(rows.select("operator", "usage_ratio").iter_rows()),
            "input_usage_ratio": first["input_usage"],
            "workers": first["workers"],
            "processors_per_worker": first["processors_per_worker"],
            "observations": first["observations"],
        },
    )


def _why(row: dict[str, Any]) -> str:
    """What the queues say about the first of the operators."""
    usage, before = row["usage_ratio"], row["input_usage"]
    # a root may have a queue of its own (where the training loop takes from it), and be slow like any other operator
    if usage is None or (row["depth"] == 0 and usage >= LIMITS.high_usage):
        return f"All queues are full, so {row['operator']}, which takes from them last, is the slowest."
    if before is None:
        return f"Its queue is filled to {usage:.0%} only: it reads more slowly than the others take."
    waits = " Its workers hardly use the CPU, so it waits for something else: reads, locks, other processes."
    idle = waits if IDLE in row["observations"] else ""
    return f"The queue before {row['operator']} is filled to {before:.0%}, that behind it to {usage:.0%}.{idle}"
