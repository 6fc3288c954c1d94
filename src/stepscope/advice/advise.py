"""Run every rule and rank the findings by severity and saving."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import polars as pl

from stepscope.advice import rules as _rules  # noqa: F401 - importing them registers them
from stepscope.advice.claims import claimed_once, replayed_kinds, within_replay
from stepscope.advice.finding import SEVERITIES, Finding, Per, Platform, per_of, platform_of
from stepscope.advice.joined import joined
from stepscope.advice.joint import has_slow_ranks, with_joint
from stepscope.advice.messages import Message, Words, words_of, written
from stepscope.advice.registry import RULES, Rule
from stepscope.advice.spans import with_span
from stepscope.errors import Cancelled, StepscopeError, Unavailable
from stepscope.plugins import FAILURES
from stepscope.present import LANGUAGES, Language
from stepscope.references import as_typed

if TYPE_CHECKING:
    from stepscope.run import Run


def advise(run: Run, *, strict: bool = False) -> list[Finding]:
    """All findings about a run: urgent ones, then by severity and saving; no saving is claimed twice (`claims`).

    What follows from another finding comes directly after it (`joined`).

    A rule whose data is missing finds nothing; the run's coverage reports missing data. Of a rule that fails, or a
    finding that cannot be put into words, `run.warnings` gets the reason; if `strict`, it is an error.
    """
    findings: list[Finding] = []
    chosen = {rank.rank for rank in run.ranks}
    ranks, per = run.table("ranks") if run.has("ranks") else None, run.analyse(per_of)
    breakdown = _known(run.whole, "breakdown")
    for name, rule in RULES.items():
        changed = {"limits": run.limits[name]} if name in run.limits else {}
        with _failures_of(rule, run, strict=strict):
            for finding in (run.whole if rule.whole_job else run).analyse(rule.function, **changed):
                with _failures_of(rule, run, strict=strict):
                    if run.whole is run or chosen.intersection(finding.ranks or chosen):
                        findings.append(with_span(completed(finding, rule, ranks, per), rule, breakdown))
    return joined(ranked(_replayed(claimed_once(findings), run)), [rank.rank for rank in run.whole.ranks])


def _known(run: Run, question: str) -> pl.DataFrame | None:
    try:
        return run.analyse(question)
    except Unavailable:
        return None


def _replayed(findings: list[Finding], run: Run) -> list[Finding]:
    """The findings, with savings cut to what a replay of the job without this time saves."""
    kinds, found = replayed_kinds(findings), findings
    try:
        if kinds:
            found = within_replay(findings, run.whole.analyse("savings", kinds=",".join(kinds)))
        return with_joint(found, run.whole.analyse("joint_savings")) if has_slow_ranks(found) else found
    except Unavailable:
        return found


@contextmanager
def _failures_of(rule: Rule, run: Run, *, strict: bool) -> Iterator[None]:
    """Make any failure of a rule a warning, so that it costs only its own findings."""
    try:
        yield
    except Unavailable:
        return
    except (*FAILURES, pl.exceptions.PanicException) as error:
        if strict and isinstance(error, SystemExit):  # by itself, it would end the process without saying where
            raise RuntimeError(f"the rule {rule.name} ({rule.function.__module__}) ends the process") from error
        if strict or isinstance(error, Cancelled):
            raise
        warning = (
            f"the rule {rule.name} ({rule.function.__module__}) failed, so findings are missing: "
            f"{type(error).__name__}: {error}. Run again with --debug and report the output to its author"
        )
        if warning not in run.warnings:
            run.warnings.append(warning)


def completed(finding: Finding, rule: Rule, ranks: pl.LazyFrame | None, per: Per) -> Finding:
    """A rule's finding with what the rule leaves open.

    Args:
        finding: The finding.
        rule: Its rule.
        ranks: The table of that name, for the platform of the finding's ranks (of all, if it names none), if the rule's
            words depend on it.
        per: What the windows of the job are, for findings that claim no saving.

    Raises:
        StepscopeError: If the rule has no such message, or its texts need other parameters.
    """
    if finding.rule != rule.name or finding.message not in rule.messages:
        there = ", ".join(f"{rule.name}: {key}" for key in rule.messages) or "none"
        raise StepscopeError(
            f"rule {rule.name}: it has no message `{finding.rule}: {finding.message}`. There is {there}"
        )
    if not finding.saving_ns:
        finding = replace(finding, per=per)
    if rule.knows_platforms and finding.platform == Platform():
        finding = replace(finding, platform=platform_of(ranks, finding.ranks or None))
    for text, language in product(vars(rule.messages[finding.message]).values(), LANGUAGES):
        written(finding, text, language)
    return finding


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Findings in the order in which they deserve attention: urgent ones, then by severity and saving.

    A small saving does not stand above a problem whose saving is unknown. Of one rule's, those about a single rank come
    first.
    """
    return sorted(findings, key=_place)


def _place(finding: Finding) -> tuple[bool, int, int, str, bool, list[int], str]:
    severity, ranks = SEVERITIES.index(finding.severity), finding.ranks
    return (
        not RULES[finding.rule].urgent,
        severity,
        -finding.saving_ns,
        finding.rule,
        len(ranks) > 1,
        ranks,
        finding.message,
    )


def message_of(finding: Finding) -> Message:
    """The message of a finding."""
    return RULES[finding.rule].messages[finding.message]


def worded(finding: Finding, language: Language = "en", *, marked: bool = False) -> Words:
    """The texts of a finding.

    Args:
        marked: Leave the marks of references in (`stepscope.references`), for a surface that names them in other words.
    """
    words = words_of(finding, message_of(finding), language)
    return words if marked else replace(words, **{name: as_typed(text) for name, text in vars(words).items()})
