"""How busy the processors were: the machine, the training process, its workers, and each dataset operator."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.input.input_queues import HOST_QUEUES
from stepscope.analysis.methods.sampled_steps import step_ranges, with_latest, with_range
from stepscope.analysis.registry import analysis
from stepscope.selection import Choice, parse_selection

SHARES = ("user_ratio", "system_ratio", "io_ratio", "idle_ratio")
COUNTS = ("runnable", "context_switches", "threads")

ALL_OPERATORS = "operators"
"""The scope of the sum over all dataset operators."""

SCOPES = ("host", "process", "worker", ALL_OPERATORS, "operator")

IN_ORDER = pl.col("scope").replace_strict({scope: n for n, scope in enumerate(SCOPES)}, default=9)
"""Sorts rows by scope."""


@analysis("rank", together=True)
def cpu_utilization(
    host_usage: pl.LazyFrame,
    input_pipeline: pl.LazyFrame | None,
    steps: pl.LazyFrame | None,
    ranks: pl.LazyFrame,
    chosen: Choice = None,
) -> pl.DataFrame:
    """List the samples of CPU use, with the step in which each was taken.

    A sample belongs to the step whose range holds it, where steps and samples are timed by one clock. Else (files of
    MindSpore's dataset profiling) it belongs to the last batch that had been taken by then, as MindSpore Insight has
    it; batches count from 1, and a sample before the first has no step.

    Args:
        host_usage: Samples.
        input_pipeline: Batches.
        steps: Steps.
        ranks: Whether the recording has one clock.
        chosen: Only samples of these steps, e.g. `1-3`.

    Returns:
        `rank`, `time_ns`, `step`, `scope` (one of `SCOPES`; `operators` is the sum over dataset operators), `name`,
        `process`, `processors`, the shares of all processors `user_ratio`, `system_ratio`, `io_ratio`, `idle_ratio`,
        `busy_processors` (user and system, in processors), `runnable`, `context_switches`, `threads`.
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


@analysis("rank", together=True, passes=("chosen",))
def cpu_summary(cpu_utilization: pl.DataFrame) -> pl.DataFrame:
    """Average and highest CPU use of host, process, each worker, each dataset operator and all of them.

    Returns:
        `rank`, `scope`, `name`, `samples`, `processors`, `mean_` and `max_` of `user_ratio`, `system_ratio`,
        `io_ratio`, `idle_ratio`, `busy_processors`, `runnable` and `context_switches`. Averages are of what is known.
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
