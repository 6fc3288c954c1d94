"""The answer in a few sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.advice.platforms import Platform
from stepscope.advice.slow_rank import VERBS
from stepscope.present import duration

if TYPE_CHECKING:
    from stepscope.advice import Finding
    from stepscope.report.answers import Answers

SPLIT = {
    "computing_ns": "computing",
    "communication_not_overlapped_ns": "exposed communication",
    "memory_not_overlapped_ns": "exposed memory operations",
    "free_ns": "idle",
}

CULPRITS = ("slow-rank", "slow-link", "slow-group")
"""Rules that accuse a rank, a link or a group; what they accuse is always named."""

WITHOUT_STEPS = 2
"""Findings that are told where nothing else is known."""

NAMED = 5
"""Culprits that are named before the rest is only counted."""


def verdict(answers: Answers) -> str:
    """What costs this job the time: the greatest finding, then slow ranks and links, then how the step splits."""
    breakdown = answers.tables.get("breakdown")
    if breakdown is None or breakdown.is_empty():
        return _without_steps(answers)
    step_ns = breakdown.select(pl.col("window_ns").median()).item()
    findings = sorted(answers.findings, key=lambda finding: -finding.saving_ns)
    culprits = [finding for finding in findings if finding.rule in CULPRITS]
    parts = []
    if findings and findings[0] not in culprits:
        parts.append(findings[0].summary)
    if culprits:
        parts.append(_sentence(culprits))
    if not findings:
        parts.append("No rank, link or stage stands out." if "slow_ranks" in answers.tables else "Nothing stands out.")
    parts.append(f"The median step takes {duration(step_ns)}: {_split(breakdown)}.")
    return " ".join(parts)


def _without_steps(answers: Answers) -> str:
    """What is found although no step can be split; without findings, why no step can."""
    reason = answers.unavailable.get("breakdown", "there is no timed work")
    findings = sorted(answers.findings, key=lambda finding: (-finding.saving_ns, finding.severity != "medium"))
    if not findings:
        return f"No step could be analysed: {reason}."
    told = [finding.summary for finding in findings[:WITHOUT_STEPS]]
    return " ".join([*told, f"How a step splits is not known: {reason}."])


def _sentence(culprits: list[Finding]) -> str:
    """The culprits and what each costs, e.g. `Rank 2 waits for data (25.66 ms a step, 6%); rank 3 ....`"""
    named = [
        f"{_accusation(finding)} ({duration(finding.saving_ns)} {finding.saved_of}, {finding.saving_ratio:.0%})"
        for finding in culprits[:NAMED]
    ]
    if len(culprits) > NAMED:
        named.append(f"{len(culprits) - NAMED} more " + ("is" if len(culprits) == NAMED + 1 else "are") + " slow")
    text = "; ".join(named)
    return text[0].upper() + text[1:] + "."


def _accusation(finding: Finding) -> str:
    """Who is slow at what, in half a sentence."""
    where, evidence = finding.where, finding.evidence
    if finding.rule == "slow-rank" and evidence.get("kind") in VERBS:
        return f"rank {where['rank']} {Platform(device=evidence.get('device_kind')).pick(VERBS[evidence['kind']])}"
    if finding.rule == "slow-link":
        a, b = where["ranks"]
        return f"link {a}-{b} has {evidence['bandwidth_ratio']:.0%} of the typical bandwidth"
    if finding.rule == "slow-group":
        name = where["group_name"] or where["group"]
        factor = evidence["slowdown_factor"]
        return f"group {name} (ranks {where['ranks']}) takes {factor:.1f} times as long to transmit as its like"
    return finding.summary.rstrip(".")


def _split(breakdown: pl.DataFrame) -> str:
    """Shares of a typical rank's step: the median of each share, so that one outlier does not shift them.

    Medians need not add up to 1, so they are scaled to do so.
    """
    steps = breakdown.filter(pl.col("window_ns") > 0)
    shares = steps.select((pl.col(column) / pl.col("window_ns")).alias(name) for column, name in SPLIT.items())
    for typical in (shares.median(), shares.mean()):  # where no part is there in most steps, all medians are 0
        parts = {name: share or 0.0 for name, share in typical.row(0, named=True).items()}
        total = sum(parts.values())
        if total > 0:
            break
    return ", ".join(f"{share / total:.0%} {name}" for name, share in parts.items() if share >= 0.005 * total > 0)
