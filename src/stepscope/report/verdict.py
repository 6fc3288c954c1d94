"""The answer in a few sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.advice.base import Per
from stepscope.advice.idle_time import LIMITS, NOT_RECORDED
from stepscope.advice.platforms import Platform
from stepscope.advice.slow_rank import VERBS
from stepscope.advice.units import unit_of
from stepscope.analysis.job.time_by_rank import LIMITS as LENGTHS
from stepscope.analysis.job.time_by_rank import long_steps, time_by_rank
from stepscope.analysis.methods.statistics import median
from stepscope.present import duration, plural

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

LONG_NAMED = 2
"""Steps that are named as far longer than the others."""

MANY_UNKNOWN = 0.2
"""Share of steps of which nothing is known from which this is said, chosen by us."""

WHY_UNKNOWN = "Why the devices are idle was not recorded."


def verdict(answers: Answers) -> str:
    """What costs this job the time: the greatest finding, then slow ranks and links, then how the step splits."""
    breakdown = answers.tables.get("breakdown")
    if breakdown is None or breakdown.is_empty():
        return _without_steps(answers)
    findings = sorted(answers.findings, key=lambda finding: -finding.saving_ns)
    culprits = [finding for finding in findings if finding.rule in CULPRITS]
    parts = []
    if findings and findings[0] not in culprits:
        parts.append(findings[0].summary)
    if culprits:
        parts.append(_sentence(culprits))
    steps = breakdown if answers.timed_steps is None else answers.timed_steps
    limits = answers.limits_of("time_by_rank", LENGTHS)
    unusual = long_steps(steps, answers.outer_steps, limits)
    averages = time_by_rank(breakdown, answers.outer_steps, limits)
    if not findings:
        parts.append(_nothing(answers, averages, unusual))
    if unusual.height:
        parts.append(_long(unusual, unit_of(breakdown).per))
    parts.append(answers.counted)
    if answers.narrow_step_ns is not None:
        parts.append(_span(breakdown, averages, answers.narrow_step_ns))
    elif steps.height == breakdown.height:
        parts.append(_average(breakdown, averages))
    else:
        parts.append(_some(steps, time_by_rank(steps, answers.outer_steps, limits), averages))
    parts.append(_unknown(answers, averages))
    parts.append(_of_how_many(answers.unknown_steps, steps))
    return " ".join(part for part in parts if part)


def _nothing(answers: Answers, averages: pl.DataFrame, unusual: pl.DataFrame) -> str:
    """That no rule found anything, unless it would hide idle time or single steps that cost much."""
    idle = _shares(averages)["free_ns"]
    if idle >= answers.limits_of("idle-time", LIMITS).much_idle_ratio:
        causes = answers.tables.get("idle")
        most = "" if causes is None or causes.is_empty() else f", most of it by the cause `{_main_cause(causes)}`"
        return f"No single thing to change stands out, but ranks are idle {idle:.0%} of the time{most}."
    if unusual.filter(~pl.col("is_first")).height or answers.narrow_step_ns is not None:
        return ""
    return "No rank, link or stage stands out." if "slow_ranks" in answers.tables else "Nothing stands out."


def _unknown(answers: Answers, averages: pl.DataFrame) -> str:
    """That most of the time is idle and nothing says why, which no finding may hide."""
    causes = answers.tables.get("idle")
    much = answers.limits_of("idle-time", LIMITS).much_idle_ratio
    if causes is None or causes.is_empty() or _shares(averages)["free_ns"] < much:
        return ""
    return WHY_UNKNOWN if _main_cause(causes) == NOT_RECORDED else ""


def _of_how_many(unknown: int, steps: pl.DataFrame) -> str:
    """That all this is of a part of the steps, where it is; a rank's last step may have just begun."""
    known = steps.height
    if unknown < MANY_UNKNOWN * (unknown + known) or unknown <= steps["rank"].n_unique():
        return ""
    return (
        f"All this is of {known} of {known + unknown} steps: no operators were recorded in the others, and what does "
        "not come in each step may cost more or less."
    )


def _main_cause(idle: pl.DataFrame) -> str:
    return str(idle.group_by("cause").agg(pl.col("idle_ns").sum()).sort("idle_ns", "cause")["cause"][-1])


def _long(steps: pl.DataFrame, per: Per) -> str:
    """The steps that are far longer than the others, e.g. `Step 21 takes 1.52 s, 98 times the median step (69%...).`"""
    named = [_long_step(row, per) for row in steps.head(LONG_NAMED).iter_rows(named=True)]
    if steps.height > LONG_NAMED:
        rest = steps.height - LONG_NAMED
        named.append(f"{rest} more {'is' if rest == 1 else 'are'} long")
    text = "; ".join(named)
    return text[0].upper() + text[1:] + "."


def _long_step(row: dict[str, Any], per: Per) -> str:
    times = f", {row['window_ns'] / row['median_ns']:.0f} times the median {per}" if row["median_ns"] else ""
    start = ", as the first one starts things up" if row["is_first"] else ""
    return (
        f"{per} {row['step']} takes {duration(row['window_ns'])}{times}{start} ({row['share_ratio']:.0%} of the time)"
    )


def _average(breakdown: pl.DataFrame, averages: pl.DataFrame) -> str:
    """What a step, or what stands for steps, takes and how it splits, as the table of ranks shows it."""
    length, split = _length(breakdown, averages), _split(averages)
    per = unit_of(breakdown).per
    if per == "recording":
        who = "the recording" if averages.height == 1 else "the average rank's recording"
        return f"The work in {who} spans {length}: {split}."
    return f"The average {per}{_without(averages).replace('step', per)} takes {length}: {split}."


def _span(breakdown: pl.DataFrame, averages: pl.DataFrame, step_ns: float) -> str:
    """What the work of a step spans where that is little of the step, as in a recording of one step with one kernel."""
    return (
        f"The recorded work of the average step on its device spans {_length(breakdown, averages)} of the "
        f"{duration(step_ns)} that the step takes on the host: {_split(averages)} of that span."
    )


def _some(steps: pl.DataFrame, every: pl.DataFrame, averages: pl.DataFrame) -> str:
    """What a step takes where operators of some steps only were recorded, which alone can be split."""
    count, split = int(every["steps"].sum()), int(averages["steps"].sum())
    return (
        f"The average step{_without(every)} takes {_length(steps, every)}. Operators were recorded in {split} of "
        f"{plural(count, 'step')}, which take {duration(_mean(averages, 'window_ns'))} on average: {_split(averages)}."
    )


def _length(steps: pl.DataFrame, averages: pl.DataFrame) -> str:
    """Mean and median length."""
    mean, median_ns = duration(_mean(averages, "window_ns")), duration(median(steps, pl.col("window_ns")))
    return mean if mean == median_ns else f"{mean} (median {median_ns})"


def _without(averages: pl.DataFrame) -> str:
    """Which step is left out."""
    left = averages["left_out_step"].drop_nulls()
    return f" without step {left[0]}" if left.len() else ""


def _split(averages: pl.DataFrame) -> str:
    """The shares of the parts."""
    shares = {SPLIT[name]: share for name, share in _shares(averages).items() if share >= 0.005}
    return ", ".join(f"{share:.0%} {name}" for name, share in shares.items())


def _mean(averages: pl.DataFrame, part: str) -> float:
    """The mean over all steps of all ranks."""
    return float(averages.select((pl.col(part) * pl.col("steps")).sum() / pl.col("steps").sum()).item())


def _shares(averages: pl.DataFrame) -> dict[str, float]:
    """What share of the time of all steps of all ranks each part takes."""
    sums = {part: _mean(averages, part) for part in SPLIT}
    return {part: value / max(sum(sums.values()), 1.0) for part, value in sums.items()}


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
        return (
            f"group {name} (ranks {where['ranks']}) takes {factor:.1f} times as long to transmit as comparable groups"
        )
    return finding.summary.rstrip(".")
