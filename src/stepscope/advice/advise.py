"""Run every rule and rank the findings by saving."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from stepscope.advice import rules as _rules  # noqa: F401 - importing them registers them
from stepscope.advice.claims import claimed_once
from stepscope.advice.finding import SEVERITIES, Finding
from stepscope.advice.formatters import Language
from stepscope.advice.messages import Message, Words, words_of
from stepscope.advice.registry import RULES, Rule
from stepscope.advice.units import per_of
from stepscope.errors import StepscopeError, Unavailable

if TYPE_CHECKING:
    from stepscope.run import Run


def advise(run: Run) -> list[Finding]:
    """All findings about a run, greatest saving first, then by severity; no saving is claimed twice (`claims`).

    A rule whose data is missing finds nothing; the run's coverage reports missing data.
    """
    findings: list[Finding] = []
    for name, rule in RULES.items():
        changed = {"limits": run.limits[name]} if name in run.limits else {}
        try:
            found = run.analyse(rule.function, **changed)
        except Unavailable:
            continue
        findings.extend(_checked(finding, rule) for finding in found)
    per = run.analyse(per_of)  # also for those that claim no saving and leave it open
    findings = [finding if finding.saving_ns else replace(finding, per=per) for finding in findings]
    return sorted(claimed_once(findings), key=_place)


def _checked(finding: Finding, rule: Rule) -> Finding:
    """The finding, if its message exists.

    Raises:
        StepscopeError: If its rule has no such message.
    """
    if finding.rule != rule.name or finding.message not in rule.messages:
        there = ", ".join(f"{rule.name}: {key}" for key in rule.messages) or "none"
        raise StepscopeError(
            f"rule {rule.name}: it has no message `{finding.rule}: {finding.message}`. There is {there}"
        )
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
