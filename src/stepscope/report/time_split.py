"""How long a step takes and how its time splits, as sentences of the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from stepscope.advice.finding import per_of
from stepscope.analysis.communication.late_ranks import late_ranks, lateness
from stepscope.analysis.methods.statistics import median
from stepscope.present import duration
from stepscope.report.sentences import Sentence

PARTS = ("computing_ns", "communication_not_overlapped_ns", "memory_not_overlapped_ns", "free_ns")
"""What the time of a step splits into."""

LEAST_SHARE = 0.005
"""Share below which a part is left out: it would be shown as 0%."""


COMMUNICATION = "communication_not_overlapped_ns"

UNSPLIT_SHARE = 0.1
"""Share of exposed communication of which it may be unknown whether it is waiting, if the rest is to be split."""


WAITS_TOO = 0.8
"""Share of the mean waiting of the others from which on a rank waits as they do, chosen by us: two ranks for which the
others wait in turn wait half as long."""


@dataclass(frozen=True)
class Waits:
    """How exposed communication splits.

    Args:
        wait_ratio: The share of it that is waiting for other ranks, without `stage_ratio`.
        transmit_ratio: The share that is transmission.
        late: The ranks for which the others mostly wait; empty if there are many.
        stage_ratio: The share that is waiting for other pipeline stages, as their schedule asks for.
    """

    wait_ratio: float
    transmit_ratio: float
    late: list[int] = field(default_factory=list)
    stage_ratio: float = 0.0


@dataclass(frozen=True)
class Stages:
    """What is known of the stages of a pipeline.

    Args:
        places: The answer `pipeline_places`.
        waits: The answer `pipeline_waits`, of the steps that are averaged.
        slow: Ranks that are slow by `slow_ranks`.
    """

    places: pl.DataFrame
    waits: pl.DataFrame
    slow: list[int] = field(default_factory=list)


def waits_of(parts: pl.DataFrame, waits: pl.DataFrame | None, stages: Stages | None = None) -> Waits | None:
    """How exposed communication splits into waiting and transmission; None if that is not known.

    Args:
        parts: The answer `time_parts`, so that the split is that of the figures: `part`, `mean_ns`, `steps`.
        waits: The answer of that name.
        stages: What is known of pipeline stages.
    """
    times = parts.group_by("part").agg((pl.col("mean_ns").cast(pl.Float64) * pl.col("steps")).sum())
    by_part: dict[str, float] = dict(times.iter_rows())
    sums = [by_part.get(part, 0.0) for part in ("wait", "transmit", "communication")]
    waiting, transmission, unsplit = sums
    if waits is None or not sum(sums) or unsplit > UNSPLIT_SHARE * sum(sums):
        return None
    if stages is None:
        return Waits(waiting / sum(sums), transmission / sum(sums), late_ranks(waits, waits["rank"].n_unique()))
    known = lateness(waits, stages.places, stages.slow)
    late, between = late_ranks(known, waits["rank"].n_unique()), 0.0
    if known.height < waits.height:
        between = min(float(stages.waits["stage_wait_ns"].sum()), waiting)
    return Waits((waiting - between) / sum(sums), transmission / sum(sums), late, between / sum(sums))


def awaited(late: Sequence[int], parts: pl.DataFrame) -> list[int]:
    """Those of the last ranks to arrive for which the others may have waited, where ranks of the job are missing.

    One that waited nearly as long as the others is only the last of the recorded ones: all wait for another rank.

    Args:
        late: The last ranks to arrive.
        parts: The answer `time_parts`.
    """
    waiting = parts.filter(pl.col("part") == "wait")
    own: dict[int, int] = dict(waiting.select("rank", "mean_ns").iter_rows())
    others = [own.get(rank, 0) for rank in sorted({*parts["rank"]}.difference(late))]
    most = WAITS_TOO * sum(others) / max(len(others), 1)
    return [rank for rank in late if own.get(rank, 0) < most]


def average_step(
    steps: pl.DataFrame, averages: pl.DataFrame, waits: Waits | None = None, *, is_unmarked: bool = False
) -> Sentence:
    """What a step, or what stands for steps, takes and how it splits, as the table of ranks shows it.

    Args:
        steps: The breakdown.
        averages: Its `time_by_rank`.
        waits: How exposed communication splits, if that is known.
        is_unmarked: Whether work that nothing marks may be in the idle time.
    """
    per, known = per_of(steps), {**_length(steps, averages), "split": _split(averages, waits, is_unmarked=is_unmarked)}
    if per == "recording":
        return Sentence("average_recording" if averages.height == 1 else "average_recordings", known, per)
    return Sentence("average", {**known, "left_out": _left_out(averages)}, per)


def narrow_step(steps: pl.DataFrame, averages: pl.DataFrame, step_ns: float) -> Sentence:
    """What the work of a step spans if that is little of the step, as in a recording of one step with one kernel."""
    return Sentence("narrow", {**_length(steps, averages), "step_ns": step_ns, "split": _split(averages)})


def some_steps(steps: pl.DataFrame, every: pl.DataFrame, averages: pl.DataFrame) -> Sentence:
    """What a step takes if operators were recorded in some steps only, which alone can be split.

    Args:
        steps: All steps.
        every: Their `time_by_rank`.
        averages: That of the steps that can be split.
    """
    known = {
        **_length(steps, every),
        "left_out": _left_out(every),
        "steps": int(every["steps"].sum()),
        "split_steps": int(averages["steps"].sum()),
        "split_mean_ns": mean(averages, "window_ns"),
        "split": _split(averages),
    }
    return Sentence("some_steps", known)


def shares(averages: pl.DataFrame) -> dict[str, float]:
    """What share of the time of all steps of all ranks each part takes."""
    sums = {part: mean(averages, part) for part in PARTS}
    return {part: value / max(sum(sums.values()), 1.0) for part, value in sums.items()}


def _split(averages: pl.DataFrame, waits: Waits | None = None, *, is_unmarked: bool = False) -> tuple[Sentence, ...]:
    found = {part: share for part, share in shares(averages).items() if share >= LEAST_SHARE}
    if is_unmarked and "free_ns" in found:
        found["unmarked_ns"] = found.pop("free_ns")
    return tuple(
        _communication(share, waits) if part == COMMUNICATION else Sentence(part, {"ratio": share})
        for part, share in found.items()
    )


def _communication(share: float, waits: Waits | None) -> Sentence:
    """Exposed communication, as what it is waiting and transmission, or that it may be either."""
    if waits is None:
        return Sentence("unsplit_communication", {"ratio": share})
    waiting, transmission = share * waits.wait_ratio, share * waits.transmit_ratio
    parts = (
        Sentence("stage_waiting", {"ratio": share * waits.stage_ratio}),
        Sentence("waiting", {"ratio": waiting, "late": waits.late or None}),
        Sentence("transmission", {"ratio": transmission}),
    )
    large = tuple(part for part in parts if part.parameters["ratio"] >= LEAST_SHARE)
    return Sentence("split_communication", {"ratio": share, "parts": large})


def _length(steps: pl.DataFrame, averages: pl.DataFrame) -> dict[str, Any]:
    """Mean and median length; the median only if it reads differently."""
    mean_ns, median_ns = mean(averages, "window_ns"), median(steps, pl.col("window_ns"))
    return {"mean_ns": mean_ns, "median_ns": None if duration(mean_ns) == duration(median_ns) else median_ns}


def _left_out(averages: pl.DataFrame) -> int | None:
    """The first step that is left out, if one is."""
    left = averages["left_out_step"].drop_nulls()
    return int(left[0]) if left.len() else None


def mean(averages: pl.DataFrame, part: str) -> float:
    """The mean over all steps of all ranks."""
    return float(averages.select((pl.col(part) * pl.col("steps")).sum() / pl.col("steps").sum()).item())
