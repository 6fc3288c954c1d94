"""What the mean step of a job consists of, by class of work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.pages.base import Derived, Page, Section
from stepscope.pages.instead import CALLS, OPERATORS, TOTALS, recorded_by
from stepscope.pages.links import BY_STEP

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run


def _wide(run: Run, rows: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """A row a rank, its parts as columns."""
    import polars as pl

    from stepscope.analysis.step.overall_summary import PARTS
    from stepscope.tables.base import Column

    wide = rows.pivot("part", index=["rank", "steps"], values="mean_ns", aggregate_function="first").sort("rank")
    parts = [part for part in PARTS if part in wide.columns]
    named = {part: f"{part}_ns" for part in parts}
    whole = pl.sum_horizontal(pl.col(parts).fill_null(0)).alias("step_ns")
    shown = wide.select(
        "rank", "steps", whole, *(pl.col(part).fill_null(0).alias(name) for part, name in named.items())
    )
    own = [
        Column(name, "int64", _MEANINGS.get(part, ""), title=_TITLES.get(part, part)) for part, name in named.items()
    ]
    return Derived(shown, columns=own)


_TITLES = {
    "ai_cpu": "AI CPU",
    "other": "other computing",
    "wait": "waiting for others",
    "transmit": "transmission",
    "communication": "comm. exposed",
    "memory": "memory exposed",
}
"""Titles of parts that do not say enough in the head of a table."""

_MEANINGS = {
    "attention": "Fused attention.",
    "matmul": "Products of matrices.",
    "convolution": "Convolutions.",
    "cube": "Other work of cube cores.",
    "vector": "Element-wise operators, reductions and other vector work.",
    "ai_cpu": "Operators on the device's own CPU.",
    "other": "Computing of no known class, e.g. on a host.",
    "wait": "Exposed communication: waiting for other ranks.",
    "transmit": "Exposed communication without waiting.",
    "communication": "Exposed communication; how much of it is waiting is unknown.",
    "memory": "Time in which only memory operations run.",
    "idle": "Time without computing, communicating or memory operations.",
}

PAGE = Page(
    "summary",
    "Show what the mean step consists of: computing by class of work, exposed communication, copies, idle time.",
    [
        Section("mean_summary", "Mean {step} by class of work", bar="mean_ns"),
        Section("rank_summaries", "Mean {step} of each rank by class of work", derived=_wide),
        Section("overall_summary", "{Steps} of each rank by class of work", only_with=("by_step",)),
    ],
    options=[BY_STEP],
    more="Where kernels of several classes run at once, the time is of the first in the order of the table, so the "
    "parts add up to the step. Much computing: see «`stepscope kernels`»; much idle time: «`stepscope gaps`»; much "
    "exposed communication: «`stepscope communication`».",
    scope="job",
    instead=recorded_by("Record steps: call the profiler's step() after each one", CALLS, OPERATORS, TOTALS),
)
