"""The answer in a few sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.advice import RULES
from stepscope.advice.finding import SEVERITIES, per_of
from stepscope.advice.joint import named
from stepscope.advice.limit_sets import VERDICT, VerdictLimits
from stepscope.advice.messages import Text
from stepscope.analysis.job.time_by_rank import LIMITS as LENGTHS
from stepscope.analysis.job.time_by_rank import long_steps, time_by_rank
from stepscope.analysis.step.idle import UNMARKED
from stepscope.present import Language
from stepscope.report.sentences import Line, Sentence, joined
from stepscope.report.time_split import average_step, narrow_step, shares, some_steps
from stepscope.report.verdict_words import NO_STEPS_ZH, NO_WORK_ZH

if TYPE_CHECKING:
    from stepscope.advice import Finding
    from stepscope.advice.finding import Per, Related
    from stepscope.report.answers import Answers

WITHOUT_STEPS = 2
"""Findings that are stated if nothing else is known."""

NAMED = 5
"""Culprits that are named before the rest is only counted."""

LONG_NAMED = 2
"""Steps that are named as far longer than the others."""

DEPENDENCY = "dependency"
"""Cause of idle time of which the saving may be nothing, so that it is stated besides the greatest finding."""

LONG_STEP = "long-step"
"""The rule that names long steps as well."""

NOT_RECORDED = "not_recorded"
"""Cause of idle time (of `idle`) where only the device was recorded."""

UNKNOWN = (NOT_RECORDED, UNMARKED)
"""Causes that stand for an unknown one."""


def verdict(answers: Answers, language: Language = "en") -> str:
    """What costs this job the time: the greatest finding, then slow ranks and links, then how the step splits."""
    return joined(list(sentences(answers)), language)


def sentences(answers: Answers) -> Iterator[Line]:
    """The sentences of the verdict, in their order."""
    breakdown = answers.tables.get("breakdown")
    if breakdown is None or breakdown.is_empty():
        yield from _without_steps(answers)
        return
    steps = breakdown if answers.timed_steps is None else answers.timed_steps
    limits = answers.limits_of("time_by_rank", LENGTHS)
    lengths = steps if answers.step_lengths is None else answers.step_lengths
    unusual = long_steps(lengths, answers.outer_steps, limits)
    averages = time_by_rank(breakdown, answers.outer_steps, limits)
    standing_out = [finding for finding in answers.findings if _stands_out(finding)]
    yield from _found(standing_out)
    if not standing_out:
        yield from _nothing(answers, averages, unusual)
    if answers.not_compared:
        yield Sentence("not_compared", {"ranks": answers.not_compared})
    if answers.replayed_steps is not None:
        replayed, every = answers.replayed_steps
        yield Sentence("some_replayed" if replayed else "none_replayed", {"replayed": replayed, "steps": every})
    if (others := _not_named(unusual, answers.findings)).height:
        yield _long(others, per_of(breakdown), standing_out)
    if answers.counted is not None:
        yield answers.counted
    if answers.narrow_step_ns is not None:
        yield narrow_step(breakdown, averages, answers.narrow_step_ns)
    elif steps.height == breakdown.height:
        yield average_step(breakdown, averages, answers.waits, is_unmarked=_main_cause(answers) == UNMARKED)
    else:
        yield some_steps(steps, time_by_rank(steps, answers.outer_steps, limits), averages)
    yield from _unknown(answers, averages)
    yield from _of_how_many(answers, steps)


def _stands_out(finding: Finding) -> bool:
    """Whether a finding is more than a remark: it stops the job, it is not of low severity, or it costs something."""
    return RULES[finding.rule].urgent or finding.severity != "low" or finding.saving_ns > 0


def _found(findings: list[Finding]) -> Iterator[Line]:
    """What stops the job, the greatest problem, and who is accused.

    Of findings that explain one another, the root is named, and one that follows from it only if that claims
    more, so that the cost would be unknown without it.
    """
    ordered = sorted(findings, key=lambda finding: -finding.saving_ns)
    for finding in findings:
        if RULES[finding.rule].urgent:
            yield Sentence("found", finding=finding)
    ordered = [finding for finding in ordered if not RULES[finding.rule].urgent]
    costs = {_key(finding): finding.saving_ns for finding in findings}
    apart = [one for one in ordered if not any(_counts(one, costs.get(_key(root), 0)) for root in one.explained_by)]
    culprits = [finding for finding in apart if RULES[finding.rule].accuses]
    first = apart[:1]
    if first and first[0].explained_by:
        first = [_root_of(first[0], findings), *first]
    for finding in first:
        if finding not in culprits:
            yield Sentence("found", finding=finding)
    for finding in apart[1:]:
        if finding not in first and finding.evidence.get("cause") == DEPENDENCY:
            yield Sentence("found", finding=finding)
    if culprits:
        yield _accused(culprits)
    hidden = max((one for one in ordered if "together_ns" in one.evidence), key=_together_ns, default=None)
    if hidden is not None:
        told = {name: hidden.evidence[name] for name in ("together_ns", "together_ratio")}
        yield Sentence("together", {"what": [named(hidden), *hidden.evidence["together_with"]], **told}, hidden.per)


def _counts(finding: Finding, root_ns: int) -> bool:
    """Whether a root that claims this stands for a finding that follows from it."""
    return root_ns > 0 and root_ns >= finding.saving_ns


def _key(finding: Finding | Related) -> tuple[str, str, tuple[int, ...]]:
    """What tells findings apart."""
    return finding.rule, finding.message, tuple(finding.ranks)


def _root_of(finding: Finding, findings: list[Finding]) -> Finding:
    """The first finding of those that a finding follows from."""
    places = {_key(one): one for one in findings}
    while finding.explained_by and _key(finding.explained_by[0]) in places:
        finding = places[_key(finding.explained_by[0])]
    return finding


def _together_ns(finding: Finding) -> int:
    return int(finding.evidence["together_ns"])


def _accused(culprits: list[Finding]) -> Line:
    """The culprits and what each costs, e.g. `Rank 2 waits for data (25.66 ms per step, 6%); rank 3 ....`"""
    named = [
        Sentence("accused", {"saving_ns": one.saving_ns, "saving_ratio": one.saving_ratio}, one.per, one)
        for one in culprits[:NAMED]
    ]
    if len(culprits) > NAMED:
        named.append(Sentence("more_accused", {"count": len(culprits) - NAMED}))
    return named


def _nothing(answers: Answers, averages: pl.DataFrame, unusual: pl.DataFrame) -> Iterator[Line]:
    """That no rule found anything, unless it would hide idle time or single steps that cost much."""
    idle, cause = shares(averages)["free_ns"], _main_cause(answers)
    if idle >= _much_idle(answers) and cause != UNMARKED:
        known = {"idle_ratio": idle, "cause": cause, "selected": answers.selected}
        yield Sentence("much_idle", known)
    elif unusual["is_first"].all() and answers.narrow_step_ns is None:
        of_ranks = "slow_ranks" in answers.tables and answers.selected is None
        yield Sentence("nothing_of_ranks") if of_ranks else Sentence("nothing", {"selected": answers.selected})


def _unknown(answers: Answers, averages: pl.DataFrame) -> Iterator[Line]:
    """That most of the time is idle and why was not recorded, which no finding may hide."""
    if shares(averages)["free_ns"] >= _much_idle(answers) and (cause := _main_cause(answers)) in UNKNOWN:
        yield Sentence(str(cause))


def _of_how_many(answers: Answers, steps: pl.DataFrame) -> Iterator[Line]:
    """That all this is about a part of the steps, if it is; a rank's last step may have just begun."""
    unknown, known = answers.unknown_steps, steps.height
    limits = answers.limits_of(VERDICT, VerdictLimits())
    if unknown >= limits.many_unknown_ratio * (unknown + known) and unknown > steps["rank"].n_unique():
        yield Sentence("some_known", {"known": known, "steps": known + unknown})


def _much_idle(answers: Answers) -> float:
    return answers.limits_of(VERDICT, VerdictLimits()).much_idle_ratio


def _main_cause(answers: Answers) -> str | None:
    """The cause with most idle time, if any is known."""
    idle = answers.tables.get("idle")
    if idle is None or idle.is_empty():
        return None
    return str(idle.group_by("cause").agg(pl.col("idle_ns").sum()).sort("idle_ns", "cause")["cause"][-1])


def _not_named(steps: pl.DataFrame, findings: list[Finding]) -> pl.DataFrame:
    """The long steps that the greatest finding neither names nor explains: ranks that are late at the start of a step
    make the others' step before or after it long."""
    greatest = max(findings, key=lambda finding: finding.saving_ns, default=None)
    if greatest is None or greatest.rule != LONG_STEP:
        return steps
    near = [step + beside for step in greatest.evidence["steps"] for beside in (-1, 0, 1)]
    return steps.filter(pl.col("is_first") | ~pl.col("step").is_in(near))


def _is_explained(step: Mapping[str, Any], findings: list[Finding]) -> bool:
    """Whether something that a finding names takes most of a step, so that its length needs no other reason."""
    spans = [one.span_ns for one in findings if one.span_ns and list(one.where.get("steps") or ()) == [step["step"]]]
    return any(2 * (end - start) >= step["window_ns"] for start, end in spans)


def _long(steps: pl.DataFrame, per: Per, findings: list[Finding]) -> Line:
    """The steps that are far longer than the others, e.g. `Step 21 takes 1.52 s, 98 times the median step (69%...).`"""
    named = [
        Sentence(
            "long_first_step" if row["is_first"] and not _is_explained(row, findings) else "long_step",
            {
                **{name: row[name] for name in ("step", "window_ns", "share_ratio")},
                "factor": row["window_ns"] / row["median_ns"] if row["median_ns"] else None,
            },
            per,
        )
        for row in steps.head(LONG_NAMED).iter_rows(named=True)
    ]
    if steps.height > LONG_NAMED:
        named.append(Sentence("more_long_steps", {"count": steps.height - LONG_NAMED}))
    return named


def _without_steps(answers: Answers) -> Iterator[Line]:
    """What is found although no step can be split; without findings, why no step can."""
    unknown = NO_WORK_ZH if answers.unknown_steps else NO_STEPS_ZH
    reason = Text(answers.unavailable.get("breakdown", "there is no timed work"), unknown)
    if not answers.findings:
        yield Sentence("no_hang") if answers.is_dump else Sentence("no_step", {"reason": reason})
        return
    findings = sorted(
        answers.findings,
        key=lambda finding: (not RULES[finding.rule].urgent, SEVERITIES.index(finding.severity), -finding.saving_ns),
    )
    for finding in findings[:WITHOUT_STEPS]:
        yield Sentence("found", finding=finding)
    if not answers.is_dump:
        yield Sentence("no_split", {"reason": reason})
