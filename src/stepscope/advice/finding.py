"""What a finding is: data; its words stand in the catalogue of its rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from stepscope.advice.platforms import Platform

Severity = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")
Per = Literal["step", "iteration", "recording", "batch"]

HIGH_RATIO, MEDIUM_RATIO = 0.05, 0.03
"""Saving as a share of the step from which a finding is of high or medium severity: the limits of the Ascend
advisor, which engineers know."""


@dataclass(frozen=True)
class Finding:
    """One thing to change.

    Args:
        rule: Name of the rule that found it.
        message: Which of the rule's messages states it, e.g. `data_loading`.
        parameters: What the message's texts name: plain values, None if unknown.
        saving_ns: Time by which each step of the job would be shorter, estimated; see `per`.
        saving_ratio: The same as a share of the median step, 0 to 1.
        saving_low_ns: The least that it saves; `saving_ns` unless given.
        saving_high_ns: The most that it saves; `saving_ns` unless given. The message states the basis of both.
        per: What `saving_ns` is of: each step; where none are marked, each iteration or the whole recording; where
            only batches were recorded, each batch.
        where: Ranks, links or steps that it is about.
        evidence: The figures behind it, with units in their names.
        platform: What its ranks run on, which decides the words.
        least: Severity that it has in any case, for what threatens more than time.
    """

    rule: str
    message: str
    parameters: dict[str, Any] = field(default_factory=dict)
    saving_ns: int = 0
    saving_ratio: float = 0.0
    saving_low_ns: int = -1
    saving_high_ns: int = -1
    per: Per = "step"
    where: dict[str, Any] = field(default_factory=dict)
    evidence: dict[str, Any] = field(default_factory=dict)
    platform: Platform = field(default_factory=Platform)
    least: Severity = "low"

    def __post_init__(self) -> None:
        """A saving without a range is its own."""
        for bound in ("saving_low_ns", "saving_high_ns"):
            if getattr(self, bound) < 0:
                object.__setattr__(self, bound, self.saving_ns)

    @property
    def severity(self) -> Severity:
        """How much it matters, by its saving."""
        if self.saving_ratio >= HIGH_RATIO:
            return "high"
        return "medium" if self.saving_ratio >= MEDIUM_RATIO else self.least

    @property
    def ranks(self) -> list[int]:
        """The ranks that it is about, in order; none if it is about all."""
        if "rank" in self.where:
            return [self.where["rank"]]
        ranks = self.where.get("ranks")
        return sorted(ranks) if isinstance(ranks, list) else []
