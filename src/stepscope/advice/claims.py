"""No saving is claimed twice: the first of several findings about the same time claims it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import polars as pl

from stepscope.advice.finding import Finding
from stepscope.advice.registry import RULES, Claim, Turn
from stepscope.advice.replayed import at_most
from stepscope.analysis.methods.saving_range import TRUSTED_RATIO

REPLAYED = {
    **{kind: kind for kind in ("data_loading", "compile", "garbage_collection", "checkpoint", "dispatch", "memory")},
    **{kind: kind for kind in ("synchronisation", "dependency")},
}
"""Kinds of time that claims are about, to those of `savings`."""

NOTHING = 0.1
"""Share of a saving up to which nothing is left of it, chosen by us: the rest is what medians differ by."""


def claimed_once(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, with savings less what findings of earlier turns claim of the same time on the same ranks.

    Each rule declares which time it claims, and in which turn (`Claim`). Findings of one rule are about different
    times. As only lengths are known, not whether times overlap, the remaining saving may be too small but never too
    large. The evidence names the rules that claim the rest (`claimed_by`). If a rule's claims yield to those of their
    own kind (`Claim.own`, `Claim.after`), findings of which nothing is left are dropped.
    """
    given = list(findings)
    settled = [finding for finding in given if _claim(finding) is None]
    claims = [(claim, finding) for finding in given if (claim := _claim(finding)) is not None]
    for claim, finding in sorted(claims, key=lambda one: one[0].turn):
        before = [other for other in settled if other.saving_ns > 0 and _takes_from(other, finding, claim)]
        less = _less(finding, before) if before else finding
        same = claim.own or any(other.rule in claim.after for other in before)
        if not (before and same and less.saving_ns <= NOTHING * finding.saving_ns):
            settled.append(less)
    return settled


def _claim(finding: Finding) -> Claim | None:
    return RULES[finding.rule].claim


def may_share_time(other: Finding, finding: Finding) -> bool:
    """Whether a finding may be about time that another one claims first."""
    claim = _claim(finding)
    return claim is not None and _takes_from(other, finding, claim)


def _takes_from(other: Finding, finding: Finding, claim: Claim) -> bool:
    """Whether an already settled finding may be about the same time as one with this claim."""
    earlier = _claim(other)
    if earlier is None or earlier.turn >= claim.turn or not _share_a_rank(other, finding):
        return False
    own = [claim.time_of(finding)] if claim.own or other.rule in claim.after else []
    return not {earlier.time_of(other), *earlier.also}.isdisjoint((*claim.yields, *own))


def _share_a_rank(one: Finding, other: Finding) -> bool:
    """Whether both are about a common rank; a finding without ranks is about all."""
    return not (one.ranks and other.ranks) or not set(one.ranks).isdisjoint(other.ranks)


def _less(finding: Finding, before: list[Finding]) -> Finding:
    """The finding with its remaining saving; the upper bound stays, as the times may not overlap."""
    claimed = sum(other.saving_ns for other in before)
    left = max(finding.saving_ns - claimed, 0)
    share = left / finding.saving_ns if finding.saving_ns else 0.0
    return replace(
        finding,
        saving_ns=left,
        saving_ratio=finding.saving_ratio * share,
        saving_low_ns=max(finding.saving_low_ns - claimed, 0),
        evidence={**finding.evidence, "claimed_by": list(dict.fromkeys(other.rule for other in before))},
    )


def replayed_kinds(findings: Iterable[Finding]) -> list[str]:
    """The kinds of time of which a replay says how much findings can save together, in order."""
    return sorted({kind for finding in findings if (kind := replayed_kind(finding)) is not None})


def within_replay(findings: Iterable[Finding], savings: pl.DataFrame) -> list[Finding]:
    """The findings, with savings that are together at most what the job saves without all time of their kinds.

    Of one kind of time, the greatest saving is claimed first. What slow ranks lose is left out of `savings`, and their
    findings stay as they are.

    Args:
        findings: The findings, claimed once.
        savings: The analysis of that name, of the kinds of these findings.
    """
    given = list(findings)
    found = list(given)
    claimed: dict[str, int] = {}
    for finding in given:
        if (kind := replayed_kind(finding)) is not None:
            claimed[kind] = claimed.get(kind, 0) + finding.saving_ns
    left = _limits(claimed, savings.filter(pl.col("error_ratio").abs() <= TRUSTED_RATIO))
    for place in sorted(range(len(given)), key=lambda place: -given[place].saving_ns):
        kind = replayed_kind(given[place])
        if kind in left:
            found[place] = at_most(given[place], left[kind])
            left[kind] -= found[place].saving_ns
    return found


def _limits(claimed: Mapping[str, int], savings: pl.DataFrame) -> dict[str, int]:
    """How much of each kind of time can be claimed: its share of what all save together; and of what other kinds leave
    of theirs, up to what it saves alone, the kind that claims most beyond its share first."""
    rows = {row["kind"]: row for row in savings.iter_rows(named=True)}
    limits = {kind: int(row["saving_ns"]) for kind, row in rows.items()}
    spare = sum(max(limit - claimed.get(kind, 0), 0) for kind, limit in limits.items())
    for kind in sorted(limits, key=lambda kind: (limits[kind] - claimed.get(kind, 0), kind)):
        more = min(claimed.get(kind, 0), rows[kind]["alone_ns"]) - limits[kind]
        taken = min(max(more, 0), spare)
        limits[kind] += taken
        spare -= taken
    return limits


def replayed_kind(finding: Finding) -> str | None:
    """The kind of time in `savings` that a finding's saving is about, unless that is of slow ranks or not per step."""
    claim = _claim(finding)
    if claim is None or claim.turn == Turn.SEEN_LATE or finding.per == "batch":
        return None
    return REPLAYED.get(claim.time_of(finding)) if finding.saving_ns else None
