"""Findings that explain one another are joined: the root first, then what follows from it.

A rule declares what its findings explain (`Rule.explains`). Two findings are joined only where the evidence says that
one follows from the other: it is the declared rule, of the declared kind of time, on the same ranks and in the same
steps as far as both are known, it is not much smaller, and how it comes about is not one of several guesses. A finding
whose whole time another one claims (`claimed_by`) is a part of that one. All other findings stay by themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from stepscope.advice.claims import may_share_time
from stepscope.advice.finding import SEVERITIES, Finding, Related, Severity
from stepscope.advice.registry import RULES, Turn

ENOUGH = 0.5
"""Share of a finding's cost from which another one explains it, chosen by us: most of it."""

_ABOUT = ("kind", "cause")
"""Names in the evidence of what a finding is about, besides its claim and its message."""


def joined(findings: Sequence[Finding], ranks: Collection[int]) -> list[Finding]:
    """The findings with their causes and effects, each effect directly after its root.

    Args:
        findings: Findings in their order, claimed once.
        ranks: All ranks of the job.
    """
    roots, parts = _roots(findings, set(ranks))
    found = [
        replace(
            finding,
            explained_by=tuple(_related(findings[root], is_part=place in parts) for root in roots[place]),
            effects=tuple(
                _related(findings[other], is_part=other in parts)
                for other in range(len(findings))
                if place in roots[other]
            ),
            least=_least(finding, [findings[other] for other in range(len(findings)) if place in roots[other]]),
        )
        for place, finding in enumerate(findings)
    ]
    return [found[place] for place in _ordered(roots)]


def _least(root: Finding, effects: Iterable[Finding]) -> Severity:
    """The least severity of a root: mending it mends what follows from it."""
    return min([root.least, *(effect.severity for effect in effects)], key=SEVERITIES.index)


def _roots(findings: Sequence[Finding], ranks: set[int]) -> tuple[list[list[int]], set[int]]:
    """For each finding the places of those that it follows from, without cycles, the first one first; and the places of
    findings that are part of these."""
    roots: list[list[int]] = [[] for _ in findings]
    parts = set[int]()
    for join in (_explains, _claims_all_of):
        for effect, finding in enumerate(findings):
            if join is _claims_all_of and roots[effect]:
                continue
            for root, other in enumerate(findings):
                if root != effect and join(other, finding, ranks) and effect not in _behind(root, roots):
                    roots[effect].append(root)
                    parts.update([effect] if join is _claims_all_of else [])
    return roots, parts


def _behind(place: int, roots: Sequence[Sequence[int]]) -> set[int]:
    """The places of a finding and of all that it follows from."""
    found, left = set[int](), [place]
    while left:
        if (one := left.pop()) not in found:
            found.add(one)
            left += roots[one]
    return found


def _ordered(roots: Sequence[Sequence[int]]) -> list[int]:
    """The places: each root where the first finding of its group stood, what follows from it directly after it."""

    def group(place: int) -> Iterator[int]:
        yield place
        for effect, of in enumerate(roots):
            if of and of[0] == place:
                yield from group(effect)

    groups = [list(group(place)) for place, of in enumerate(roots) if not of]
    return [place for members in sorted(groups, key=min) for place in members]


def _explains(root: Finding, effect: Finding, ranks: set[int]) -> bool:
    """Whether a finding follows from another one, as the rule of that one declares."""
    if root.confidence == "possible" or not _is_enough(root, effect):
        return False
    return any(
        rule == effect.rule and _is_of_kind(root, effect, kind) and _same_place(root, effect, ranks, kind)
        for rule, _, kind in (one.partition(":") for one in RULES[root.rule].explains)
    )


def _is_enough(root: Finding, effect: Finding) -> bool:
    """Whether a root costs most of what an effect costs, before claims, as far as both are known."""
    claim = RULES[effect.rule].claim
    late = claim is not None and claim.turn == Turn.SEEN_LATE  # its saving may be hidden by others, its excess is not
    cost = max(effect.saving_ns, int(effect.evidence.get("excess_ns") or 0) if late else 0)
    known = max(root.saving_ns, root.saving_high_ns)
    return not known or not cost or root.per != effect.per or known >= ENOUGH * cost


def _is_of_kind(root: Finding, effect: Finding, kind: str) -> bool:
    """Whether an effect is about a kind of time; without a kind, about that of its root, if it is about one of several.

    A message that ends with `/reason` is one of the kind before it.
    """
    claim, own = RULES[effect.rule].claim, RULES[root.rule].claim
    about = {str(effect.evidence[name]) for name in _ABOUT if name in effect.evidence}
    about |= {effect.message, effect.message.partition("/")[0]}
    about |= {claim.time_of(effect)} if claim is not None else set()
    if kind:
        return kind in about
    if claim is None or not claim.time_in:
        return True
    return own is not None and own.time_of(root) in about


def _same_place(root: Finding, effect: Finding, ranks: set[int], kind: str) -> bool:
    """Whether a root is on all ranks of an effect, and in all its steps, as far as these are known.

    A finding without ranks is about all of them, or about the median rank: a root on most ranks is on that one as well.
    A finding about who holds the others up explains what these wait for.
    """
    claim = RULES[root.rule].claim
    if claim is None or claim.turn != Turn.SEEN_LATE:
        on = set(root.ranks) or ranks
        covers = on >= set(effect.ranks) if effect.ranks else 2 * len(on & ranks) > len(ranks)
        if not covers:
            return False
    when, then = root.where.get("steps"), effect.where.get("steps")
    if when and then:
        return set(then) <= set(when)
    # what occurs in some steps does not explain what all steps have, unless it is the same kind of time
    return bool(kind or not when)


def _claims_all_of(other: Finding, finding: Finding, _: set[int]) -> bool:
    """Whether another finding, together with the like of it, claims all the time that a finding is about."""
    return (
        finding.saving_ns <= 0 < finding.saving_high_ns  # claims leave the upper bound as it was
        and other.saving_ns > 0
        and other.rule in finding.evidence.get("claimed_by", ())
        and may_share_time(other, finding)
    )


def _related(finding: Finding, *, is_part: bool) -> Related:
    return Related(finding.rule, finding.message, tuple(finding.ranks), "part" if is_part else "cause")


def problems(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that are problems by themselves: those that follow from no other one."""
    return [finding for finding in findings if not finding.explained_by]
