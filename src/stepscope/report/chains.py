"""Which problems follow from which, by their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepscope.advice.finding import Finding
    from stepscope.report.contents import Problem


def related(problems: Sequence[Problem]) -> list[Problem]:
    """The problems with the numbers of those that they explain and that they follow from."""
    numbers = {_key(problem.finding): problem.number for problem in problems}

    def of(others: Sequence[Any]) -> list[int]:
        return [numbers[key] for other in others if (key := (other.rule, other.message, tuple(other.ranks))) in numbers]

    return [
        replace(
            problem,
            effects=of(getattr(problem.finding, "effects", ())),
            roots=of(getattr(problem.finding, "explained_by", ())),
        )
        for problem in problems
    ]


def _key(finding: Finding) -> tuple[str, str, tuple[int, ...]]:
    return finding.rule, finding.message, tuple(finding.ranks)
