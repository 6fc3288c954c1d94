"""How batches reach a rank, and what holds them up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.pages.base import Page, Section
from stepscope.pages.host import CPU_SUMMARY
from stepscope.pages.instead import MARKED_STEPS, recorded_by

if TYPE_CHECKING:
    import polars as pl


def _bottlenecks(stages: pl.DataFrame) -> Iterator[str]:
    """The stage to look at."""
    for stage, verdict in stages.select("stage", "verdict").iter_rows():
        if verdict == "bottleneck":
            yield f"The bottleneck is {stage}."


def _chain(operators: pl.DataFrame) -> Iterator[str]:
    """The operators that are slower than their neighbours, from the readers to the root."""
    for chain in operators["chain"].drop_nulls().unique(maintain_order=True):
        yield f"Slowest operators of the pipeline: {chain}."


PAGE = Page(
    "input",
    "Show how batches reach a rank: queues, stages, dataset operators, data loaders, and their CPU usage.",
    [
        Section("input_stages", "Stages of the input", every_step=True, sentences=_bottlenecks),
        Section("input_queues", "Queues", every_step=True),
        Section(
            "input_operators", "Dataset operators", every_step=True, hidden=("sample_interval_ns",), sentences=_chain
        ),
        Section("loader", "Data loaders", every_step=True),
        Section("loader_steps", "Waiting for data {by_step}"),
        Section("input_batches", "Batches by queue"),
        Section("input_samples", "Samples of the operators' queues", every_step=True),
        CPU_SUMMARY,
    ],
    instead=recorded_by(
        "Record the data loader with `stepscope record`, or MindSpore's with data_process=True",
        MARKED_STEPS,
    ),
)
