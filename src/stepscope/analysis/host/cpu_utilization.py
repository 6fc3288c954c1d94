"""How busy the processors were: the machine, the training process, its workers, and each dataset operator."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.input.input_queues import HOST_QUEUES
from stepscope.analysis.methods.sampled_steps import step_ranges, with_latest, with_range
from stepscope.analysis.registry import analysis
from stepscope.selection import Choice, parse_selection
from stepscope.tables.base import Column

SHARES = ("user_ratio", "system_ratio", "io_ratio", "idle_ratio")
COUNTS = ("runnable", "context_switches", "threads")

ALL_OPERATORS = "operators"
"""The scope of the sum over all dataset operators."""

SCOPES = ("host", "process", "worker", ALL_OPERATORS, "operator")

IN_ORDER = pl.col("scope").replace_strict({scope: n for n, scope in enumerate(SCOPES)}, default=9)
"""Sorts rows by scope."""


@analysis(
    "rank",
    columns(
        "rank time_ns step",
        Column("scope", "string", "Whose CPU use it is; `operators` is the sum over dataset operators.", values=SCOPES),
        meaning("name", "Worker or dataset operator; null for host and process."),
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
    """List the samples of CPU use, with the step in which each was taken.

    A sample belongs to the step whose range contains it, if steps and samples share a clock. Otherwise (files of
    MindSpore's dataset profiling) it belongs to the last batch taken before it, as in MindSpore Insight; batches count
    from 1, and a sample before the first has no step.

    Args:
        host_usage: Samples.
        input_pipeline: Batches.
        steps: Steps.
        ranks: To know whether the recording has one clock.
        chosen: Only samples of these steps, e.g. `1-3`.

    Returns:
        One row per sample.
    """
    columns = ("rank", "time_ns", "scope", "name", "process", "processors", *SHARES, *COUNTS)
    samples = host_usage.select(columns).collect()
    known = pl.any_horizontal(pl.col(*SHARES, *COUNTS).is_not_null())
    samples = pl.concat([samples, _summed(samples)]).filter(known)
    user, system = pl.col("user_ratio"), pl.col("system_ratio")
    busy = pl.when(user.is_not_null() | system.is_not_null()).then(user.fill_null(0) + system.fill_null(0))
    stepped = _stepped(samples, input_pipeline, steps, ranks)
    wanted = parse_selection(chosen, "steps")
    if wanted is not None:
        stepped = stepped.filter(wanted.expression("step"))
    return (
        stepped.with_columns(busy_processors=busy * pl.col("processors"))
        .select(*columns[:2], "step", *columns[2:6], *SHARES, "busy_processors", *COUNTS)
        .sort("rank", "time_ns", IN_ORDER, "name", "process", nulls_last=True, maintain_order=True)
    )


@analysis(
    "rank",
    columns(
        "rank",
        Column("scope", "string", "Whose CPU use it is; `operators` is the sum over dataset operators.", values=SCOPES),
        meaning("name", "Worker or dataset operator; null for host and process."),
        "samples processors",
        Column("mean_user_ratio", "float64", "Mean of `user_ratio`."),
        Column("mean_system_ratio", "float64", "Mean of `system_ratio`."),
        Column("mean_io_ratio", "float64", "Mean of `io_ratio`.", importance=9),
        Column("mean_idle_ratio", "float64", "Mean of `idle_ratio`."),
        Column("mean_busy_processors", "float64", "Mean of `busy_processors`."),
        Column("mean_runnable", "float64", "Mean of `runnable`.", importance=6),
        Column("mean_context_switches", "float64", "Mean of `context_switches`.", importance=5),
        Column("max_user_ratio", "float64", "Maximum of `user_ratio`.", importance=4),
        Column("max_system_ratio", "float64", "Maximum of `system_ratio`.", importance=3),
        Column("max_io_ratio", "float64", "Maximum of `io_ratio`.", importance=2),
        Column("max_idle_ratio", "float64", "Maximum of `idle_ratio`.", importance=7),
        Column("max_busy_processors", "float64", "Maximum of `busy_processors`.", importance=8),
        Column("max_runnable", "int64", "Maximum of `runnable`.", importance=1),
        Column("max_context_switches", "int64", "Maximum of `context_switches`.", importance=0),
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

    Returns:
        One row per scope and name; means and maxima ignore unknown values.
    """
    measured = (*SHARES, "busy_processors", "runnable", "context_switches")
    return (
        cpu_utilization.group_by("rank", "scope", "name", maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("samples"),
            pl.col("processors").max(),
            *(pl.col(name).mean().alias(f"mean_{name}") for name in measured),
            *(pl.col(name).max().alias(f"max_{name}") for name in measured),
        )
        .sort("rank", IN_ORDER, "name", nulls_last=True, maintain_order=True)
    )


def _summed(samples: pl.DataFrame) -> pl.DataFrame:
    """The sum over dataset operators at each time."""
    sums = [
        pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name)
        for name in ("user_ratio", "system_ratio")
    ]
    return (
        samples.filter(pl.col("scope") == "operator")
        .group_by("rank", "time_ns", maintain_order=True)
        .agg(pl.col("processors").max(), *sums)
        .with_columns(scope=pl.lit(ALL_OPERATORS))
        .pipe(lambda rows: pl.concat([samples.clear(), rows], how="diagonal"))
    )


def _stepped(
    samples: pl.DataFrame, input_pipeline: pl.LazyFrame | None, steps: pl.LazyFrame | None, ranks: pl.LazyFrame
) -> pl.DataFrame:
    """Samples with `step`."""
    ranges = step_ranges(steps, ranks)
    if ranges.height:
        return with_range(samples, ranges)
    if input_pipeline is None:
        return samples.with_columns(step=pl.lit(None, pl.Int32))
    batches = (
        input_pipeline.filter(pl.col("operator").is_in(HOST_QUEUES) & pl.col("time_ns").is_not_null())
        .sort("rank", "batch", "time_ns", maintain_order=True)
        .select("rank", since_ns="time_ns", step=pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("rank"))
        .sort("since_ns", maintain_order=True)
        .collect()
    )
    return with_latest(samples, batches)
