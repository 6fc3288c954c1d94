"""What a detector said of a simulated job, compared with the truth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from simulated_live.jobs import HOST_RANKS, Fault, Job
from simulated_live.play import Played, Told

CAUSES: dict[str, tuple[str, ...]] = {
    "compute": ("slow_compute", "slow_host"),
    "garbage": ("slow_compute",),
    "data": ("slow_data",),
    "checkpoint": ("slow_checkpoint",),
    "link": ("slow_link",),
    "send": ("slow_send",),
    "job": ("slow_job",),
}


@dataclass
class Score:
    """Of one job.

    Args:
        faults: How many there are.
        found: How many of them were named with the right cause and exactly their ranks.
        seen: How many were named with the right cause and some of their ranks, or ranks that contain them.
        false: Verdicts that name healthy ranks or a wrong cause.
        delays_s, delays_steps: From the first slow step to the verdict that names the fault exactly.
        recovered: Of faults that end, how many were reported as over, within a quarter of an hour.
        surenesses: Of right and of wrong verdicts.
    """

    family: str
    magnitude: str
    job: str
    ranks: int
    faults: int = 0
    found: int = 0
    seen: int = 0
    true: int = 0
    false: int = 0
    ending: int = 0
    recovered: int = 0
    delays_s: list[float] = field(default_factory=list)
    delays_steps: list[int] = field(default_factory=list)
    sure_true: list[float] = field(default_factory=list)
    sure_false: list[float] = field(default_factory=list)
    cost_ratios: list[float] = field(default_factory=list)
    digests: int = 0
    cpu_s: float = 0.0
    hours: float = 0.0
    misses: list[str] = field(default_factory=list)
    baselines: dict[str, tuple[int, int, int, list[int]]] = field(default_factory=dict)
    """By name: true ranks, false ranks, faults found, delays in steps."""


def score(played: Played) -> Score:
    """Compare what was said with the truth."""
    job = played.job
    result = Score(job.family, job.magnitude, job.name, job.layout.world)
    result.digests, result.cpu_s = played.digests, played.cpu_s
    result.hours = played.ends_s[-1] / 3600 if played.ends_s else 0.0
    told = [one for one in played.told if not one.verdict.is_over]
    firsts: dict[str, Told] = {}
    for one in told:
        firsts.setdefault(one.verdict.key, one)
    for key, one in firsts.items():
        verdict = one.verdict
        right = any(_is_right(fault, one, job) for fault in job.faults)
        if right:
            result.true += 1
            result.sure_true.append(verdict.sureness)
        else:
            result.false += 1
            result.sure_false.append(verdict.sureness)
            result.misses.append(f"false {key} ranks {verdict.ranks[:8]} at step {one.step}, x{verdict.ratio}")
    for fault in job.faults:
        result.faults += 1
        exact = [one for one in told if _is_right(fault, one, job) and _is_exact(fault, one)]
        near = [one for one in told if _is_right(fault, one, job)]
        result.seen += bool(near)
        in_turn = fault.rotates and len(exact) == 0 and len(near) >= len(fault.ranks) / 2
        if not exact and not in_turn:
            result.misses.append(f"missed {fault}")
            continue
        result.found += 1
        first = (exact or near)[0]
        began_s = played.ends_s[fault.first - 2] if fault.first > 1 else 0.0
        result.delays_s.append(first.at_s - began_s)
        result.delays_steps.append(first.step - fault.first + 1)
        if fault.last is not None and fault.last < job.steps - 60:
            result.ending += 1
            key = first.verdict.key
            over = [one for one in played.told if one.verdict.key == key and one.verdict.is_over]
            result.recovered += bool(over and over[-1].step >= fault.last and not over[-1].verdict.explanation)
    return result


def _is_right(fault: Fault, told: Told, job: Job) -> bool:
    verdict = told.verdict
    blamed, guilty = set(verdict.ranks), set(fault.ranks)
    if told.step < fault.first:
        return False
    if verdict.cause.value == "slow_job":  # true of a job that a fault slows down
        return True
    if verdict.cause.value not in CAUSES[fault.kind]:
        return False
    if blamed <= guilty:
        return True
    in_group = bool(verdict.group) and guilty <= blamed and len(blamed) <= max(HOST_RANKS, job.layout.tensor)
    return in_group or (fault.kind in ("link", "send") and blamed == guilty)


def _is_exact(fault: Fault, told: Told) -> bool:
    verdict = told.verdict
    if fault.kind == "job":
        return verdict.cause.value == "slow_job"
    if verdict.cause.value == "slow_job":
        return False
    return set(verdict.ranks) == set(fault.ranks)


def blamed_ranks(job: Job, names: Iterable[tuple[str, int]]) -> tuple[int, int, int]:
    """Of ranks that a baseline blames (kind and rank): how many rightly, wrongly, and how many faults are found."""
    blamed = set(names)
    guilty = {(fault.kind, rank) for fault in job.faults for rank in fault.ranks}
    guilty |= {("compute", rank) for kind, rank in guilty if kind == "garbage"}
    ranks = {rank for _, rank in guilty}
    right = {one for one in blamed if one in guilty}
    wrong = {one for one in blamed if one not in guilty and one[1] not in ranks}
    found = sum(
        bool(fault.ranks)
        and all((("compute" if fault.kind == "garbage" else fault.kind), rank) in blamed for rank in fault.ranks)
        for fault in job.faults
    )
    return len(right), len(wrong), found
