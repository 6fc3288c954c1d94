"""`stepscope input`: how batches reach a rank, and what holds them up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stepscope.cli.asking import Table, asks
from stepscope.cli.host import cpu_summary
from stepscope.cli.options import OneStep

if TYPE_CHECKING:
    import polars as pl


@asks
def input_(step: OneStep = None) -> Sequence[Table]:
    """Show how batches reach a rank: queues, stages, dataset operators, the data loader, and the CPU they use."""
    of_step = {"chosen": step} if step is not None else {}
    return [
        Table("input_stages", "Stages of the input", every_step=True, says=_bottlenecks),
        Table(
            "input_queues",
            "Queues",
            every_step=True,
            keeps=("queue", "empty_ratio", "mean_total_ns", "batches", "empty", "mean_size", "queue_capacity"),
        ),
        Table(
            "input_operators",
            "Dataset operators",
            every_step=True,
            hidden=("sample_interval_ns",),
            says=_chain,
            keeps=(
                "operator",
                "bottleneck",
                "usage_ratio",
                "processors",
                "empty_ratio",
                "workers",
                "mean_size",
                "type",
            ),
        ),
        Table(
            "loader",
            "Data loaders",
            every_step=True,
            keeps=("loader", "mean_wait_ns", "wait_ratio", "max_wait_ns", "steps", "median_wait_ns"),
        ),
        Table("loader_steps", "Waiting for data by step"),
        Table("input_batches", "Batches by queue"),
        Table("input_samples", "Samples of the operators' queues", every_step=True),
        cpu_summary(of_step),
    ]


def _bottlenecks(stages: pl.DataFrame) -> Iterator[str]:
    """The stage to look at."""
    for stage, verdict in stages.select("stage", "verdict").iter_rows():
        if verdict == "bottleneck":
            yield f"The bottleneck is {stage}."


def _chain(operators: pl.DataFrame) -> Iterator[str]:
    """The operators that are slower than those beside them, from the readers to the root."""
    for chain in operators["chain"].drop_nulls().unique(maintain_order=True):
        yield f"The slowest of the pipeline: {chain}."
