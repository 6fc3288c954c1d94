"""What a finding is, and how a rule that makes findings is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from stepscope.present import duration

Severity = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")
Per = Literal["step", "iteration", "recording", "batch"]
EACH: Mapping[Per, str] = {"step": "a step", "iteration": "an iteration", "batch": "a batch"}
"""Behind a time that each step, iteration or batch takes."""

HIGH_RATIO, MEDIUM_RATIO = 0.05, 0.03
"""Saving as a share of the step from which a finding is of high or medium severity: the limits of the Ascend
advisor, which engineers know."""


@dataclass(frozen=True)
class Finding:
    """One thing to change.

    Args:
        rule: Name of the rule that says so.
        summary: One sentence: what is wrong and where.
        cause: Why it happens, as far as the data shows.
        action: What to do about it.
        saving_ns: Time that each step of the job would be shorter, estimated; see `per`.
        saving_ratio: The same as a share of the median step, 0 to 1.
        where: Ranks, links or steps that it is about.
        evidence: The figures behind it, with units in their names.
        least: Severity that it has in any case, for what threatens more than time.
        per: What `saving_ns` is of: each step; where none are marked, each iteration or the whole recording; where
            only batches were recorded, each batch.
    """

    rule: str
    summary: str
    cause: str
    action: str
    saving_ns: int
    saving_ratio: float
    where: dict[str, Any] = field(default_factory=dict)
    evidence: dict[str, Any] = field(default_factory=dict)
    least: Severity = "low"
    per: Per = "step"

    @property
    def saved_of(self) -> str:
        """What the saving is of, behind its time: `a step`, `an iteration`, `of the recording`."""
        return EACH.get(self.per, f"of the {self.per}")

    @property
    def severity(self) -> Severity:
        """How much it matters, by its saving."""
        if self.saving_ratio >= HIGH_RATIO:
            return "high"
        return "medium" if self.saving_ratio >= MEDIUM_RATIO else self.least


Rule = Callable[..., Iterable[Finding]]

RULES: dict[str, Rule] = {}
"""Rules by name. A rule's parameters are named after tables and analyses, as those of an analysis are."""


def rule(name: str) -> Callable[[Rule], Rule]:
    """Register a function as a rule."""

    def register(function: Rule) -> Rule:
        RULES[name] = function
        return function

    return register


def ms(ns: float) -> str:
    """A duration in a sentence: as `duration`, but with three digits from 1 ms on.

    Examples:
        >>> ms(0), ms(50_000), ms(12_340_000), ms(540e6), ms(1.5e9)
        ('0 us', '50.0 us', '12.3 ms', '540 ms', '1.50 s')
    """
    value = ns / 1e6
    if abs(value) >= 999.5:
        return f"{value / 1e3:.2f} s"
    if abs(value) < 0.99995:
        return duration(ns)
    return f"{value:.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2}f} ms"
