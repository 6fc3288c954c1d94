"""Run every rule and rank the findings by saving."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stepscope.advice import rules as _rules  # noqa: F401 - importing them registers them
from stepscope.advice.claims import claimed_once
from stepscope.advice.finding import SEVERITIES, Finding, Per, Platform, per_of, platform_of
from stepscope.advice.formatters import Language
from stepscope.advice.messages import Message, Words, words_of
from stepscope.advice.registry import RULES, Rule
from stepscope.errors import StepscopeError, Unavailable

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run


def advise(run: Run) -> list[Finding]:
    """All findings about a run, greatest saving first, then by severity; no saving is claimed twice (`claims`).

    A rule whose data is missing finds nothing; the run's coverage reports missing data.
    """
    findings: list[Finding] = []
    ranks, per = run.table("ranks") if run.has("ranks") else None, run.analyse(per_of)
    for name, rule in RULES.items():
        changed = {"limits": run.limits[name]} if name in run.limits else {}
        try:
            found = run.analyse(rule.function, **changed)
        except Unavailable:
            continue
        findings.extend(completed(finding, rule, ranks, per) for finding in found)
    return sorted(claimed_once(findings), key=_place)


def completed(finding: Finding, rule: Rule, ranks: pl.LazyFrame | None, per: Per) -> Finding:
    """A rule's finding with what the rule leaves open.

    Args:
        finding: The finding.
        rule: Its rule.
        ranks: The table of that name, for the platform of the finding's ranks (of all, if it names none), if the rule's
            words depend on it.
        per: What the windows of the job are, for findings that claim no saving.

    Raises:
        StepscopeError: If the rule has no such message.
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
    return finding


def _place(finding: Finding) -> tuple[int, int, str, bool, list[int], str]:
    """Sort key of a rule's findings: those about a single rank first, others in the rule's order."""
    severity, ranks = SEVERITIES.index(finding.severity), finding.ranks
    return (-finding.saving_ns, severity, finding.rule, len(ranks) > 1, ranks, finding.message)


def message_of(finding: Finding) -> Message:
    """The message of a finding."""
    return RULES[finding.rule].messages[finding.message]


def worded(finding: Finding, language: Language = "en") -> Words:
    """The texts of a finding."""
    return words_of(finding, message_of(finding), language)
