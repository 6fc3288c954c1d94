"""How busy the processors were: the machine, the training process, its workers, and each dataset operator."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.input.input_queues import HOST_QUEUES
from stepscope.analysis.methods.statistics import sum_known
from stepscope.analysis.methods.step_windows import in_steps, step_ranges, with_latest, with_range
from stepscope.analysis.registry import analysis
from stepscope.selection import Choice
from stepscope.tables import INPUT_PIPELINE
from stepscope.tables.base import ORDINARY, Column, DType, with_schema

SHARES = ("user_ratio", "system_ratio", "io_ratio", "idle_ratio")
COUNTS = ("runnable", "context_switches", "threads")

ALL_OPERATORS = "operators"
"""The scope of the sum over all dataset operators."""

SCOPES = ("host", "process", "worker", ALL_OPERATORS, "operator")

IN_ORDER = pl.col("scope").replace_strict({scope: n for n, scope in enumerate(SCOPES)}, default=9)
"""Sorts rows by scope."""

SCOPE = Column("scope", "string", "Whose CPU use it is; `operators` is the sum over dataset operators.", values=SCOPES)

NAME = meaning("name", "Worker or dataset operator; null for host and process.")

SUMMARISED = (*SHARES, "busy_processors", "runnable", "context_switches")
"""Figures of which `cpu_summary` has mean and maximum."""

LEAST_IMPORTANT = (
    *("max_context_switches", "max_runnable", "max_io_ratio", "max_system_ratio", "max_user_ratio"),
    *("mean_context_switches", "mean_runnable", "max_idle_ratio", "max_busy_processors", "mean_io_ratio"),
)
"""Columns of `cpu_summary` that a narrow display drops first, in this order."""


def _summary(prefix: str, what: str, name: str) -> Column:
    """The column of `cpu_summary` with the mean or maximum of a figure."""
    column = f"{prefix}_{name}"
    importance = LEAST_IMPORTANT.index(column) if column in LEAST_IMPORTANT else ORDINARY
    dtype: DType = "int64" if column in ("max_runnable", "max_context_switches") else "float64"
    return Column(column, dtype, f"{what} of `{name}`.", importance=importance)


@analysis(
    "rank",
    columns(
        "rank time_ns step",
        SCOPE,
        NAME,
        meaning("process", "Process id; null for the host and for sums."),
        "processors",
        Column("user_ratio", "float64", "Share in user code."),
        Column("system_ratio", "float64", "Share in the kernel."),
        Column("io_ratio", "float64", "Share waiting for I/O."),
        Column("idle_ratio", "float64", "Share idle."),
        Column("busy_processors", "float64", "Processors in user code or the kernel."),
        Column("runnable", "int64", "Number of running or runnable processes."),
        Column("context_switches", "int64", "Context switches since the previous sample."),
        Column("threads", "int64", "Number of threads."),
        keep="name busy_processors time_ns step scope idle_ratio user_ratio system_ratio",
    ),
    together=True,
)
def cpu_utilization(
    host_usage: pl.LazyFrame,
    input_pipeline: pl.LazyFrame | None,
    steps: pl.LazyFrame | None,
    ranks: pl.LazyFrame,
    chosen: Choice = None,
) -> pl.DataFrame:
    """List the samples of CPU use, with the step in which each was taken: one row per sample.

    A sample belongs to the step whose range contains it, if steps and samples share a clock. Otherwise (files of
    MindSpore's dataset profiling) it belongs to the last batch taken before it, as in MindSpore Insight; batches count
    from 1, and a sample before the first has no step.

    Args:
        chosen: Only samples of these steps, e.g. `1-3`; all samples of a rank if none of their steps is known.
    """
    columns = ("rank", "time_ns", "scope", "name", "process", "processors", *SHARES, *COUNTS)
    samples = host_usage.select(columns).collect()
    known = pl.any_horizontal(pl.col(*SHARES, *COUNTS).is_not_null())
    samples = pl.concat([samples, _summed(samples)]).filter(known)
    user, system = pl.col("user_ratio"), pl.col("system_ratio")
    busy = pl.when(user.is_not_null() | system.is_not_null()).then(user.fill_null(0) + system.fill_null(0))
    stepped = _stepped(samples, input_pipeline, steps, ranks)
    return (
        in_steps(stepped, chosen)
        .with_columns(busy_processors=busy * pl.col("processors"))
        .select(*columns[:2], "step", *columns[2:6], *SHARES, "busy_processors", *COUNTS)
        .sort("rank", "time_ns", IN_ORDER, "name", "process", nulls_last=True, maintain_order=True)
    )


@analysis(
    "rank",
    columns(
        "rank",
        SCOPE,
        NAME,
        "samples processors",
        *(_summary("mean", "Mean", name) for name in SUMMARISED),
        *(_summary("max", "Maximum", name) for name in SUMMARISED),
        keep=(
            "name mean_busy_processors scope max_busy_processors mean_idle_ratio "
            "mean_user_ratio mean_system_ratio samples"
        ),
    ),
    together=True,
    passes=("chosen",),
)
def cpu_summary(cpu_utilization: pl.DataFrame) -> pl.DataFrame:
    """Average and highest CPU use of the host, the process, each worker, each dataset operator and all operators.

    Means and maxima ignore unknown values.
    """
    return (
        cpu_utilization.group_by("rank", "scope", "name", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("samples"),
            pl.col("processors").max(),
            pl.col(SUMMARISED).mean().name.prefix("mean_"),
            pl.col(SUMMARISED).max().name.prefix("max_"),
        )
        .sort("rank", IN_ORDER, "name", nulls_last=True, maintain_order=True)
    )


def _summed(samples: pl.DataFrame) -> pl.DataFrame:
    """The sum over dataset operators at each time."""
    sums = (
        samples.filter(pl.col("scope") == "operator")
        .group_by("rank", "time_ns", maintain_order=True)
        .agg(pl.col("processors").max(), sum_known("user_ratio"), sum_known("system_ratio"))
        .with_columns(scope=pl.lit(ALL_OPERATORS))
    )
    return with_schema(sums, samples.schema)


def _stepped(
    samples: pl.DataFrame, input_pipeline: pl.LazyFrame | None, steps: pl.LazyFrame | None, ranks: pl.LazyFrame
) -> pl.DataFrame:
    """Samples with `step`."""
    ranges = step_ranges(steps, ranks)
    if ranges.height:
        return with_range(samples, ranges)
    batches = (
        INPUT_PIPELINE.or_empty(input_pipeline)
        .filter(pl.col("operator").is_in(HOST_QUEUES) & pl.col("time_ns").is_not_null())
        .sort("rank", "batch", "time_ns", maintain_order=True)
        .select("rank", since_ns="time_ns", step=pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("rank"))
        .sort("since_ns", maintain_order=True)
        .collect()
    )
    return with_latest(samples, batches)
