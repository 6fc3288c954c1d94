"""Facts of a run for the head of a report: where it is, what recorded it, and how its average step splits."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.advice.finding import per_of
from stepscope.advice.messages import fill
from stepscope.analysis.job.time_by_rank import LIMITS, time_by_rank
from stepscope.paths import shown
from stepscope.present import Language, duration, minute
from stepscope.report.report_words import WORDS
from stepscope.report.time_split import mean, shares

if TYPE_CHECKING:
    import polars as pl

    from stepscope.report.answers import Answers
    from stepscope.run import Run


@dataclass(frozen=True)
class Fact:
    """A name with what it is.

    Args:
        copied: The text is to be copied as it is.
    """

    name: str
    text: str
    copied: bool = False


@dataclass(frozen=True)
class Share:
    """A part of the average step.

    Args:
        key: The column of `breakdown`.
        ratio: Its share, 0 to 1.
    """

    key: str
    name: str
    ratio: float


@dataclass(frozen=True)
class Facts:
    """The facts, the split of the average step (empty if none can be split), and when the recording starts."""

    facts: Sequence[Fact]
    shares: Sequence[Share] = ()
    start_ns: int | None = None


def about_run(run: Run, answers: Answers, language: Language, bench: Run | None = None) -> Facts:
    """The facts of a run; `bench` is the run that it is compared with."""
    facts = list(_facts(run, answers, language, bench))
    return Facts(facts, list(_shares(answers, language)), answers.start_ns)


def _facts(run: Run, answers: Answers, language: Language, bench: Run | None) -> Iterator[Fact]:
    rows = run.table("ranks").collect()

    def fact(name: str, text: str) -> Fact:
        return Fact(WORDS[name].of(language), text)

    yield fact("path", shown(os.path.normpath(run.path)))
    if bench is not None:
        yield fact("bench", shown(os.path.normpath(bench.path)))
    for name, column in (("formats", "format"), ("framework", "framework"), ("device", "device_kind")):
        if kinds := sorted({*rows[column].drop_nulls()}):
            yield fact(name, ", ".join(kinds))
    world = run.world_size
    known = {"recorded": rows.height, "world": world}
    partly = world is not None and world != rows.height
    yield fact("rank_count", fill(WORDS["of_world"], known, language) if partly else str(rows.height))
    if start := minute(answers.start_ns):
        yield fact("recorded_at", start)
    yield from _steps(run, answers, language)


def _steps(run: Run, answers: Answers, language: Language) -> Iterator[Fact]:
    """How many steps there are, how many of a rank the means are of if not of all, and the mean step of the verdict."""
    breakdown, recorded = answers.tables.get("breakdown"), run.step_count
    averages = _averages(answers, breakdown if answers.timed_steps is None else answers.timed_steps)
    per = per_of(breakdown)
    if recorded is not None:
        averaged = None if averages is None else max(averages["steps"].to_list())
        known = {"recorded": recorded, "averaged": None if averaged == recorded else averaged}
        name = "iteration_count" if per == "iteration" else "step_count"
        yield Fact(WORDS[name].of(language), fill(WORDS["of_steps"], known, language))
    if averages is not None:
        name = {"iteration": "mean_iteration", "recording": "recording_length"}.get(per, "mean_step")
        mean_ns = mean(averages, "window_ns") if answers.narrow_step_ns is None else answers.narrow_step_ns
        yield Fact(WORDS[name].of(language), duration(mean_ns))


def _averages(answers: Answers, steps: pl.DataFrame | None) -> pl.DataFrame | None:
    if steps is None or steps.is_empty():
        return None
    return time_by_rank(steps, answers.outer_steps, answers.limits_of("time_by_rank", LIMITS))


def _shares(answers: Answers, language: Language) -> Iterator[Share]:
    averages = _averages(answers, answers.tables.get("breakdown"))
    if averages is None or averages.is_empty():
        return
    for key, ratio in shares(averages).items():
        if ratio > 0:
            yield Share(key, WORDS[key].of(language), ratio)
