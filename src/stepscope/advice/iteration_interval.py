"""Steps start late: the device waits from the end of one to the first operator of the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.advice.base import Finding, ms, rule
from stepscope.advice.platforms import CPU, MINDSPORE, Choices, platform_of
from stepscope.advice.ranks import named, on_rank, place
from stepscope.analysis.input.input_stages import BOTTLENECK
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When the interval between steps is worth a finding."""

    interval_ns: int = limit(500_000, "ns, mean of the steps without the first", "MindSpore Insight")


LIMITS = Limits()

CAUSES: Choices = {
    (None, None): "The device waits for its next batch, or for the host to launch the step.",
    (None, CPU): "Training waits for its next batch, or for what the script does between steps.",
}
_RARER = "do less between steps: callbacks, logging and summaries less often"
ACTIONS: Choices = {
    (MINDSPORE, CPU): f"See `stepscope input` for the queues of the dataset; if they are full, {_RARER}.",
    (MINDSPORE, None): (
        f"See `stepscope input` for the queues between dataset and device; if they are full, {_RARER}, several steps "
        "sunk at once (sink_size)."
    ),
    (None, None): f"See `stepscope input` for the queues of the input; if they are full, {_RARER}.",
}


@rule("iteration-interval")
def iteration_interval(
    device_steps: pl.DataFrame,
    step_trace: pl.DataFrame,
    input_stages: pl.DataFrame | None,
    ranks: pl.LazyFrame | None = None,
    limits: Limits = LIMITS,
) -> Iterator[Finding]:
    """Report long intervals between steps, where the device's own step table states them.

    The first step has no interval, so it does not count unless it is the only one. The saving is what the mean exceeds
    the limit by, on the rank where it is longest: shorter intervals are not to be had. What timelines tell of idle
    time is the matter of `idle-time`.
    """
    stated = step_trace.join(device_steps, on=["rank", "step"], how="semi").drop_nulls("interval_ns")
    counted = (pl.int_range(pl.len()).over("rank") > 0) | (pl.len().over("rank") == 1)
    late = (
        stated.sort("rank", "start_ns")
        .filter(counted)
        .group_by("rank")
        .agg(pl.col("interval_ns").mean(), pl.col("step_ns").mean(), steps=pl.len())
        .filter(pl.col("interval_ns") > limits.interval_ns)
        .sort("interval_ns", descending=True)
    )
    if late.is_empty():
        return
    worst = late.row(0, named=True)
    numbers = late["rank"].to_list()
    where = on_rank(worst["rank"], numbers)
    stage = _slow_stage(input_stages, numbers)
    platform = platform_of(ranks, numbers)
    saving = worst["interval_ns"] - limits.interval_ns
    yield Finding(
        rule="iteration-interval",
        summary=(
            f"{named(numbers, 'starts', 'start')} steps late: {ms(worst['interval_ns'])} from the end of one to the "
            f"first operator of the next{where}, more than {ms(limits.interval_ns)}."
        ),
        cause=(platform.pick(CAUSES) + (f" The input is slow at this stage: {stage}." if stage else "")),
        action=platform.pick(ACTIONS),
        saving_ns=round(saving),
        saving_ratio=saving / worst["step_ns"] if worst["step_ns"] else 0.0,
        where=place(numbers),
        evidence={
            "interval_ns": round(worst["interval_ns"]),
            "step_ns": round(worst["step_ns"]),
            "steps": worst["steps"],
            "slow_stage": stage,
        },
    )


def _slow_stage(stages: pl.DataFrame | None, ranks: list[int]) -> str | None:
    """The stage of the input that is the bottleneck on any of these ranks."""
    if stages is None:
        return None
    slow = stages.filter((pl.col("verdict") == BOTTLENECK) & pl.col("rank").is_in(ranks))
    return str(slow["stage"][0]) if slow.height else None
