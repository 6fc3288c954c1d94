"""Findings with their words, places and evidence, and which follow from which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stepscope.advice import RULES
from stepscope.advice.daily import daily, daily_words
from stepscope.advice.messages import Words, fill
from stepscope.present import duration
from stepscope.report.facts import Fact
from stepscope.report.findings import plain_finding
from stepscope.report.items import Item, Items
from stepscope.report.report_words import DIMENSIONS, PRIORITIES, WORDS

if TYPE_CHECKING:
    from stepscope.advice import Finding
    from stepscope.advice.daily import Prices
    from stepscope.advice.finding import Related
    from stepscope.present import Language

EVIDENCE_ROWS = 12
"""Rows of evidence that a finding shows; the rest is in the workbook."""


@dataclass(frozen=True)
class Problem:
    """A finding with all its words.

    Args:
        number: Its place among all findings, from 1.
        category: Its dimension, in words.
        priority: Its severity, in words.
        words: Its texts.
        computed: How its rule decides; empty if the rule does not state it.
        places: Where it is: ranks, steps and the like, in words.
        evidence: Its tables.
        effects: Numbers of the findings that follow from it.
        roots: Numbers of the findings from which it follows.
        parts: Numbers of the findings whose time is a part of its time.
        wholes: Numbers of the findings of whose time its own is a part.
        counted_in: Numbers of the findings in whose saving its time is counted.
        saving_known: Whether a saving is known.
        daily: What it saves in a day, in words; empty if no prices are given or if that is unknown.
    """

    number: int
    finding: Finding
    category: str
    priority: str
    words: Words
    computed: str = ""
    places: Sequence[Fact] = ()
    evidence: Sequence[Item] = ()
    effects: Sequence[int] = ()
    roots: Sequence[int] = ()
    parts: Sequence[int] = ()
    wholes: Sequence[int] = ()
    counted_in: Sequence[int] = ()
    saving_known: bool = True
    daily: str = ""

    @property
    def saves(self) -> bool:
        """Whether mending it alone is known to save something."""
        return self.saving_known and self.finding.saving_ns > 0

    @property
    def costs(self) -> bool:
        """Whether its time is what it costs, of which nothing is known to be saved."""
        return not self.saving_known and self.finding.saving_ns > 0

    @property
    def key(self) -> str:
        """Its name in links."""
        return f"problem-{self.number}"


def problem_of(number: int, finding: Finding, items: Items, prices: Prices | None = None) -> Problem:
    """A finding with its words in the language of the items, and its evidence."""
    language = items.language
    from_rule = RULES[finding.rule]
    plain = plain_finding(finding, language)
    return Problem(
        number,
        finding,
        DIMENSIONS[from_rule.dimension].of(language),
        PRIORITIES[finding.severity].of(language),
        items.worded(finding),
        from_rule.computed.of(language) if from_rule.computed else "",
        list(items.places(finding)),
        [item for name in from_rule.shows if (item := items.evidence(name, finding, EVIDENCE_ROWS))],
        saving_known=plain["saving_ns"] is not None,
        daily=daily_words(saved, language) if (saved := daily(finding, prices)) else "",
    )


def saving_cell(problem: Problem, language: Language) -> str:
    """The saving in a table: a time, the problems in whose saving it is counted, or `-`."""
    if problem.saves:
        return duration(problem.finding.saving_ns)
    numbers = problem.counted_in
    if problem.costs or not numbers:
        return "-"
    return fill(
        WORDS["counted_in"], {"numbers": ", #".join(map(str, numbers[:2])) + " …" * (len(numbers) > 2)}, language
    )


def cost_cell(problem: Problem) -> str:
    """What it costs, in a table, with its share of the step; `-` if its time is saved or counted elsewhere."""
    finding = problem.finding
    return f"{duration(finding.saving_ns)} ({finding.saving_ratio:.1%})" if problem.costs else "-"


def related(problems: Sequence[Problem]) -> list[Problem]:
    """The problems with the numbers of those that they explain, that they follow from, and that claim their time."""
    numbers = {_key(problem.finding): problem.number for problem in problems}

    def of(others: Sequence[Related], how: str) -> list[int]:
        keys = [(other.rule, other.message, tuple(other.ranks)) for other in others if other.how == how]
        return [numbers[key] for key in keys if key in numbers]

    found = []
    for problem in problems:
        effects, roots = problem.finding.effects, problem.finding.explained_by
        near = replace(
            problem,
            effects=of(effects, "cause"),
            roots=of(roots, "cause"),
            parts=of(effects, "part"),
            wholes=of(roots, "part"),
        )
        found.append(replace(near, counted_in=_claimants(near, problems)))
    return found


def _claimants(problem: Problem, problems: Sequence[Problem]) -> list[int]:
    """Of the findings that claim a finding's time, those that are known to be about it, else all on its ranks."""
    finding = problem.finding
    claims = [
        other.number
        for other in problems
        if other.finding.rule in finding.evidence.get("claimed_by", ())
        and other.finding.saving_ns > 0
        and (not finding.ranks or not other.finding.ranks or {*finding.ranks} & {*other.finding.ranks})
    ]
    near = {*problem.effects, *problem.roots, *problem.parts, *problem.wholes}
    return [number for number in claims if number in near] or claims


def _key(finding: Finding) -> tuple[str, str, tuple[int, ...]]:
    return finding.rule, finding.message, tuple(finding.ranks)
