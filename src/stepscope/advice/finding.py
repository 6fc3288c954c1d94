"""A finding is data; its words are in the catalogue of its rule."""

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
        message: Key of its message in the rule's catalogue, e.g. `data_loading`.
        parameters: Values for the message's texts; None if unknown.
        saving_ns: Estimated time by which each step of the job would be shorter; see `per`.
        saving_ratio: The same as a share of the median step, 0 to 1.
        saving_low_ns: Lower bound of the saving. Default: `saving_ns`.
        saving_high_ns: Upper bound of the saving. Default: `saving_ns`. The message states the basis of both.
        per: Unit of `saving_ns`: step; iteration or recording if no steps are marked; batch if only batches were
            recorded.
        where: Ranks, links or steps concerned.
        evidence: Supporting figures, with units in their names.
        platform: Framework and device of its ranks, which select the texts.
        least: Minimum severity, for problems that threaten more than time.
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
        """Use the saving itself if there is no range."""
        for bound in ("saving_low_ns", "saving_high_ns"):
            if getattr(self, bound) < 0:
                object.__setattr__(self, bound, self.saving_ns)

    @property
    def severity(self) -> Severity:
        """Severity by its saving."""
        if self.saving_ratio >= HIGH_RATIO:
            return "high"
        return "medium" if self.saving_ratio >= MEDIUM_RATIO else self.least

    @property
    def ranks(self) -> list[int]:
        """The ranks concerned, in order; empty if it is about all."""
        if "rank" in self.where:
            return [self.where["rank"]]
        ranks = self.where.get("ranks")
        return sorted(ranks) if isinstance(ranks, list) else []
