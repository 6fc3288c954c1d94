"""All answers about a run, gathered once; the terminal and the JSON file show the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from stepscope.advice import RULES, Finding, advise
from stepscope.analysis.rank_lists import accused
from stepscope.errors import Unavailable
from stepscope.pages.answering import Answered, answer
from stepscope.pages.job import PAGE
from stepscope.pages.replayed import replayed_steps
from stepscope.references import as_typed
from stepscope.report.sentences import Sentence, counted
from stepscope.report.time_split import Stages, Waits, awaited, waits_of
from stepscope.report.timelines import Timelines

if TYPE_CHECKING:
    from stepscope.run import Run

T = TypeVar("T")


@dataclass(frozen=True)
class Answers:
    """What is known about a run.

    Args:
        tables: Result of each analysis that the data allows, by name.
        findings: Advice, greatest saving first.
        unavailable: Why an analysis has no result, for people, by name.
        counted: What times are of if no steps are marked; else None.
        timed_steps: The steps of which it is known when they were busy, also those that `breakdown` cannot split; None
            if of none.
        outer_steps: The first and the last step that were recorded; None if no step can be split.
        step_lengths: How long each of `timed_steps` took, with what its host does before and after all device work.
        narrow_step_ns: What a step takes on the host, if the work of its device spans little of it; else None.
        unknown_steps: How many steps are not among `timed_steps`, of all ranks.
        selected: The ranks that the user selected; None if they are all of the job.
        limits: Sets of limits that take the place of the default ones, by rule or analysis.
        waits: How the exposed communication of the average step splits; None if unknown.
        page: The page that the tables are of, to be shown.
        is_dump: Whether the run consists of dumps of a flight recorder, which answer only why it hangs.
        not_compared: Recorded ranks that cannot be compared with the others, as their recordings are incomplete.
        replayed_steps: In how many steps slow ranks and links were looked for, and how many there are; None if in all.
        start_ns: When the recording starts; None if unknown.
        timelines: Its trace files.
    """

    tables: dict[str, pl.DataFrame]
    findings: list[Finding]
    unavailable: dict[str, str] = field(default_factory=dict)
    counted: Sentence | None = None
    timed_steps: pl.DataFrame | None = None
    outer_steps: pl.DataFrame | None = None
    step_lengths: pl.DataFrame | None = None
    narrow_step_ns: float | None = None
    unknown_steps: int = 0
    selected: list[int] | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    waits: Waits | None = None
    page: Answered | None = None
    not_compared: list[int] = field(default_factory=list)
    is_dump: bool = False
    replayed_steps: tuple[int, int] | None = None
    start_ns: int | None = None
    timelines: Timelines = field(default_factory=Timelines)

    def limits_of(self, name: str, default: T) -> T:
        """The limits of a rule or analysis."""
        limits: T = self.limits.get(name, default)
        return limits


def answers(run: Run, *, strict: bool = False) -> Answers:
    """Ask a run every question of the page about a job, and for advice; `strict` is that of `advise`."""
    answered = answer(run, PAGE)
    findings = [*_beside(run, strict=strict), *advise(run, strict=strict)]
    timed_steps, outer_steps, step_lengths = (
        run.analyse(question) if "breakdown" in answered.tables else None
        for question in ("timed_steps", "outer_steps", "step_lengths")
    )
    known = 0 if timed_steps is None else timed_steps.height
    steps = run.table("steps").select(pl.len()).collect().item() if run.has("steps") else 0
    return Answers(
        answered.tables,
        findings,
        {name: as_typed(reason) for name, reason in answered.unavailable.items()},
        counted(run),
        timed_steps,
        outer_steps,
        step_lengths,
        run.narrow_step_ns,
        max(steps - known, 0),
        None if run.whole is run else [rank.rank for rank in run.ranks],
        run.limits,
        _waits(run),
        answered,
        _not_compared(run),
        run.has("recorded_calls") and not answered.tables,
        replayed_steps(run) if len(run.whole.ranks) > 1 else None,
        min((rank.facts["start_ns"] for rank in run.ranks if rank.facts.get("start_ns") is not None), default=None),
        Timelines.of(run),
    )


def _beside(run: Run, *, strict: bool) -> list[Finding]:
    """What stops the job, by dumps of its calls that lie beside its recordings and so are a run of their own."""
    dumps = [other for other in run.others if other.has("recorded_calls")]
    found = [finding for other in dumps for finding in advise(other, strict=strict)]
    return [finding for finding in found if RULES[finding.rule].urgent]


def _not_compared(run: Run) -> list[int]:
    try:
        found = run.whole.analyse("compared_ranks")
    except Unavailable:
        return []
    ranks: list[int] = found.filter(~found["is_compared"])["rank"].to_list()
    return ranks


def _waits(run: Run) -> Waits | None:
    try:
        parts = run.analyse("time_parts")
        found = waits_of(parts, run.whole.analyse("waits"), _stages(run))
    except Unavailable:
        return None
    if found is None or (run.world_size or 0) <= len(run.whole.ranks):
        return found
    return replace(found, late=awaited(found.late, parts))


def _averaged(run: Run, steps: pl.DataFrame) -> pl.DataFrame:
    """The rows of steps that are averaged: without a first one that is far longer than the others."""
    left_out = run.analyse("time_by_rank").select("rank", step="left_out_step").drop_nulls()
    return steps.join(left_out, on=["rank", "step"], how="anti", maintain_order="left")


def _stages(run: Run) -> Stages | None:
    """What is known of pipeline stages; None without any."""
    try:
        places, waits = run.whole.analyse("pipeline_places"), _averaged(run, run.analyse("pipeline_waits"))
    except Unavailable:
        return None
    try:
        slow = accused(run.whole.analyse("slow_ranks"))
    except Unavailable:
        slow = []
    return Stages(places, waits, slow)
