"""No saving is claimed twice: time that several findings are about is claimed by the first of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from stepscope.advice.base import Finding

ORDER = (
    *("slow-rank", "idle-time", "compile-time", "checkpoint"),
    *("host-queue", "data-queue", "data-loader", "iteration-interval"),
)
"""Rules about time in which a device waits for its input or for the host. Those that saw it idle come first, then those
that saw one thing stop training or the input wait, last the one that only saw a step start late, for whichever reason.
"""

STOPS = {"compile-time": "compile", "checkpoint": "checkpoint"}
"""Rules about one thing that stops training, in the words of `slow-rank`."""

INPUT = "data_loading"
"""What the rules between the first two and the last are about, in the words of the first two."""

HOST = (INPUT, "dispatch", "synchronisation", "garbage_collection", "python")
"""What may make a step start late."""


def claimed_once(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, with savings less what findings before them in `ORDER` claim of the same time on the same ranks.

    Two findings of one rule are about different times. What is left may be too little, as only lengths are known and
    not whether they are of the same moments; it is never too much. Whoever claims instead is in the evidence
    (`claimed_by`).
    """
    given = list(findings)
    settled: list[Finding] = [finding for finding in given if finding.rule not in ORDER]
    for finding in sorted((f for f in given if f.rule in ORDER), key=lambda f: ORDER.index(f.rule)):
        before = [other for other in settled if other.saving_ns > 0 and _claims_of(other, finding)]
        settled.append(_less(finding, before) if before else finding)
    return settled


def _claims_of(other: Finding, finding: Finding) -> bool:
    """Whether a finding before another may be about the same time."""
    if other.rule not in ORDER or other.rule == finding.rule or finding.rule in ORDER[:2]:
        return False
    kind = STOPS.get(other.rule, other.evidence.get("kind", other.evidence.get("cause", INPUT)))
    wanted = HOST if finding.rule == ORDER[-1] else (STOPS.get(finding.rule, INPUT),)
    return kind in wanted and _share_a_rank(other, finding)


def _share_a_rank(one: Finding, other: Finding) -> bool:
    """Whether both are about some rank; a finding that names none is about all."""
    sets = [set(f.where.get("ranks") or ([f.where["rank"]] if "rank" in f.where else [])) for f in (one, other)]
    return not all(sets) or not sets[0].isdisjoint(sets[1])


def _less(finding: Finding, before: list[Finding]) -> Finding:
    """The finding with what is left of its saving."""
    left = max(finding.saving_ns - sum(other.saving_ns for other in before), 0)
    share = left / finding.saving_ns if finding.saving_ns else 0.0
    return replace(
        finding,
        saving_ns=left,
        saving_ratio=finding.saving_ratio * share,
        evidence={**finding.evidence, "claimed_by": list(dict.fromkeys(other.rule for other in before))},
    )
