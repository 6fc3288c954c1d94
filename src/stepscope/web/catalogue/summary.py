"""What the list of runs says of one: its findings and its number of steps, kept on disk like answers to analyses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stepscope.advice import RULES, Finding, advise
from stepscope.advice.finding import SEVERITIES

if TYPE_CHECKING:
    from stepscope.run import Run


@dataclass(frozen=True)
class Summary:
    """Findings, the most important one first, and the number of steps; None if none are marked."""

    findings: tuple[Finding, ...]
    steps: int | None

    @property
    def counts(self) -> dict[str, int]:
        """How many findings there are of each severity."""
        found = [finding.severity for finding in self.findings]
        return {severity: found.count(severity) for severity in SEVERITIES}


@dataclass(frozen=True)
class _Asked:
    """The question as answers are kept: it depends on all rules."""

    function: Callable[..., Any]
    name: str = "summary"

    @property
    def closure(self) -> Sequence[Any]:
        return [self, *RULES.values()]


class _NotKept(Exception):
    """Nothing is kept."""


def summary(run: Run) -> Summary:
    """The summary of a run, kept for later."""

    def compute() -> Summary:
        return Summary(tuple(advise(run)), run.step_count)

    return run.keep(_Asked(summary), {}, None, compute)


def mark_warm(run: Run) -> None:
    """Keep that all that pages ask is kept."""
    run.keep(_Asked(mark_warm, "warm"), {}, None, lambda: True)


def kept_summary(run: Run) -> tuple[Summary | None, bool]:
    """The summary of a run if it is kept, and whether all that pages ask is; nothing is computed."""
    return _kept(run, _Asked(summary)), _kept(run, _Asked(mark_warm, "warm")) is True


def _kept(run: Run, asked: _Asked) -> Any:
    def compute() -> Any:
        raise _NotKept

    try:
        return run.keep(asked, {}, None, compute)
    except _NotKept:
        return None
