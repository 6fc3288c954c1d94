"""What the product says of a job, and how far that is from the truth."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from simulated.faults import FASTER, Fault
from simulated.truth import Truth
from simulated.uneven import UNEVEN
from stepscope.advice import advise, worded
from stepscope.advice.finding import Finding
from stepscope.advice.registry import RULES
from stepscope.run import Run

MATERIAL = 0.02
"""Share of the step from which a loss must be found."""
RULE_KINDS = {
    "slow-link": "link", "slow-nic": "link", "slow-group": "group", "data-loader": "data_loading",
    "compile-time": "compile", "checkpoint": "checkpoint", "single-pause": "outlier", "long-step": "outlier",
    "outlier-step": "outlier", "slow-step": "outlier",
}  # fmt: skip
"""What the name of a rule says of the kind."""
SYNONYMS = {"data": "data_loading", "loader": "data_loading", "gc": "garbage_collection", "slow": "", "network": "link"}


@dataclass(frozen=True)
class Claim:
    """A finding, as far as it is compared with the truth."""

    rule: str
    kinds: tuple[str, ...]
    ranks: tuple[int, ...]
    steps: tuple[int, ...]
    saving_ns: float
    low_ns: float
    high_ns: float
    severity: str
    accuses: bool
    together_ns: float = 0.0
    """What it saves together with others, if it says so."""
    text: str = ""
    """All that it says, in lower case."""


def claims_of(run: Run, steps: int) -> list[Claim]:
    """The findings of a run."""
    return [_claim(finding, steps) for finding in advise(run)]


def _claim(finding: Finding, steps: int) -> Claim:
    stated = (source.get("kind") for source in (finding.where, finding.parameters, finding.evidence))
    causes = (source.get("cause") for source in (finding.where, finding.parameters, finding.evidence))
    words = [finding.message, RULE_KINDS.get(finding.rule, ""), *stated, *causes]
    kinds = tuple(dict.fromkeys(SYNONYMS.get(word, word) for word in words if isinstance(word, str) and word))
    per = 1 if finding.per != "recording" else steps
    found_steps = next((s for source in (finding.where, finding.evidence) for s in _steps_in(source)), ())
    return Claim(
        rule=finding.rule,
        kinds=kinds,
        ranks=tuple(finding.ranks),
        steps=tuple(found_steps),
        saving_ns=(finding.saving_ns or finding.evidence.get("if_alike_ns", 0)) / per,
        low_ns=finding.saving_low_ns / per,
        high_ns=finding.saving_high_ns / per,
        severity=finding.severity,
        accuses=RULES[finding.rule].accuses or finding.rule.startswith("slow-"),
        together_ns=float(finding.evidence.get("together_ns", 0)) / per,
        text=f"{vars(worded(finding))} {finding.parameters} {finding.evidence}".lower(),
    )


def _steps_in(source: dict[str, Any]) -> list[tuple[int, ...]]:
    """The steps that a part of a finding names."""
    lists = [source[name] for name in ("steps", "stalled_steps") if isinstance(source.get(name), list)]
    alone = [source["step"]] if isinstance(source.get("step"), int) else []
    return [tuple(each) for each in (*lists, alone) if each]


@dataclass
class Score:
    """How the product did with one job; lengths in ns per step."""

    family: str
    job: str
    ranks: int
    steps: int
    step_ns: float
    loss_ns: float
    loss_share: float
    material: int = 0
    """Causes that cost enough to be found."""
    named: int = 0
    """Those of them that one finding, or for several ranks one finding each, names exactly."""
    partly: int = 0
    """Those of which only some ranks, or more than these, are named."""
    kind_right: int = 0
    reasons: int = 0
    """Those named whose recorded cause can be shown."""
    reasons_right: int = 0
    """Those of which a finding says it."""
    accusations: int = 0
    right: int = 0
    """Accusations of exactly a true unit."""
    wrong: int = 0
    """Accusations of a rank that is not at fault at all."""
    high: int = 0
    """Findings of high severity."""
    saving_ns: float | None = None
    """What findings about the true causes claim; None if there is none."""
    error: float | None = None
    accused_ns: float = 0.0
    """What all accusations claim."""
    within: bool | None = None
    """Whether the loss lies in the range of the savings that are claimed of the true causes."""
    claimed_ns: float = 0.0
    """What all findings claim."""
    seconds: float = 0.0
    failure: str = ""
    claims: list[dict[str, Any]] = field(default_factory=list)
    truth: list[dict[str, Any]] = field(default_factory=list)


def score(family: str, truth: Truth, run: Run) -> Score:
    """Ask about a job and compare."""
    found = Score(family, truth.name, truth.ranks, truth.steps, truth.step_ns, truth.loss_ns, truth.loss_share)
    begun = time.process_time()
    try:
        claims = claims_of(run, truth.steps)
    except Exception as error:  # any failure of the product is a result
        claims, found.failure = [], f"{type(error).__name__}: {error}"
    found.failure = found.failure or "; ".join(run.warnings)
    found.seconds = time.process_time() - begun
    found.claims = [{name: value for name, value in asdict(claim).items() if name != "text"} for claim in claims]
    _compare(found, truth, claims)
    return found


def _compare(found: Score, truth: Truth, claims: Sequence[Claim]) -> None:
    faults = [fault for fault, _ in truth.costs]
    found.truth = [
        {"kind": fault.kind, "unit": fault.unit, "ranks": fault.ranks, "alone_ns": cost} for fault, cost in truth.costs
    ]
    accusing = [claim for claim in claims if claim.accuses]
    found.accusations = len(accusing)
    right = [any(is_about(claim, fault, truth) for fault in faults) for claim in accusing]
    found.right = sum(right)
    guilty = {rank for fault in faults if fault.kind not in (UNEVEN, FASTER) for rank in fault.ranks}
    others = [claim for claim, is_right in zip(accusing, right, strict=True) if not is_right]
    found.wrong = sum(not guilty.issuperset(claim.ranks) or not claim.ranks for claim in others)
    found.high = sum(claim.severity == "high" for claim in claims)
    found.accused_ns = sum(claim.saving_ns for claim in accusing)
    found.claimed_ns = sum(claim.saving_ns for claim in claims)
    related: list[Claim] = []
    is_material = truth.loss_share >= MATERIAL
    for fault, cost in truth.costs:
        about = [claim for claim in claims if is_about(claim, fault, truth)]
        near = [claim for claim in claims if claim not in about and _overlaps(claim, fault)]
        each = _each_alone(near, fault) if fault.unit == "ranks" and not about else []
        related += [claim for claim in about + near if claim not in related]
        if is_material and (cost >= MATERIAL * found.step_ns or len(faults) > 1):
            found.material += 1
            found.named += bool(about or each)
            found.partly += bool(near) and not about and not each
            best = max(about or each or near, key=lambda claim: claim.saving_ns, default=None)
            found.kind_right += bool(about or each) and best is not None and _kind_fits(best, fault)
            if fault.reason and (about or each):
                found.reasons += 1
                found.reasons_right += any(fault.reason in claim.text for claim in about + each)
    if related and is_material:
        together = max(claim.together_ns for claim in related) if len(faults) > 1 else 0.0
        found.saving_ns = together or sum(claim.saving_ns for claim in related)
        found.error = abs(found.saving_ns - found.loss_ns) / found.loss_ns
        low, high = (sum(getattr(claim, name) for claim in related) for name in ("low_ns", "high_ns"))
        found.within = low - 0.01 * found.loss_ns <= found.loss_ns <= high + 0.01 * found.loss_ns


def is_about(claim: Claim, fault: Fault, truth: Truth) -> bool:
    """Whether a claim names exactly what is at fault."""
    everyone = set(range(truth.ranks))
    struck = set(claim.ranks)
    if fault.kind == "outlier":
        step = min(fault.steps or ()) + truth.first_step
        # on a device, a stall at the start of a step makes the window of the step before longer
        return not {step, step - 1}.isdisjoint(claim.steps) and len(claim.steps) <= 2 and struck <= everyone
    if fault.unit == "job":
        return struck in (set(), everyone) and _kind_fits(claim, fault) and claim.saving_ns > 0
    if fault.unit == "rotating":
        words = " ".join((claim.rule, *claim.kinds))
        return struck in (set(), everyone) and any(
            word in words for word in ("rotat", "uneven", "changing", "another", "moving")
        )
    if fault.kind == FASTER:
        return FASTER in claim.kinds and not claim.accuses and struck == everyone - set(fault.ranks)
    if (fault.kind == UNEVEN) != (UNEVEN in claim.kinds):
        return False
    return struck == set(fault.ranks) or (
        fault.kind == "group" and fault.path is not None and struck == set(fault.path.ranks)
    )


def _overlaps(claim: Claim, fault: Fault) -> bool:
    """Whether a claim is about some of the ranks at fault."""
    if fault.unit in ("job", "rotating") or fault.kind == "outlier":
        return False
    if UNEVEN in (fault.kind, *claim.kinds) and not _kind_fits(claim, fault):
        return False
    if not claim.accuses:  # what is said of others as well was so before the fault
        return bool(claim.ranks) and set(claim.ranks) <= set(fault.ranks) and _kind_fits(claim, fault)
    return bool(set(claim.ranks) & set(fault.ranks))


def _each_alone(claims: Sequence[Claim], fault: Fault) -> list[Claim]:
    """Claims that together name exactly the ranks at fault, if there are such."""
    inside = [claim for claim in claims if set(claim.ranks) <= set(fault.ranks)]
    return inside if {rank for claim in inside for rank in claim.ranks} == set(fault.ranks) else []


def _kind_fits(claim: Claim, fault: Fault) -> bool:
    return bool(set(claim.kinds) & {fault.kind, *fault.also})
