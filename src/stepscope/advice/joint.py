"""Several faults that hide one another: what mending one alone saves, and what they save together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import polars as pl

from stepscope.advice.claims import replayed_kind
from stepscope.advice.finding import Finding
from stepscope.advice.registry import RULES
from stepscope.analysis.methods.saving_range import TRUSTED_RATIO

MORE = 0.05
"""Share of the mean step that mending two causes must save beyond what each saves alone, chosen by us: less needs no
sentence."""

SLOW_RANK = "slow-rank"

MOST = 4
"""Number of ranks of a finding that are named in a list of findings."""


def has_slow_ranks(findings: Iterable[Finding]) -> bool:
    """Whether findings claim that mending a slow rank saves something."""
    return any(_is_slow(finding) for finding in findings)


def with_joint(findings: Iterable[Finding], joint: pl.DataFrame) -> list[Finding]:
    """The findings, with what they save together where that is much more than what each saves alone.

    The range of a saving that needs slow ranks to be mended as well goes down to what it saves while they are as slow.

    Args:
        findings: The findings, with savings cut to what a replay saves.
        joint: `joint_savings`.
    """
    given = list(findings)
    rows = {row["kind"]: row for row in joint.iter_rows(named=True) if abs(row["error_ratio"]) <= TRUSTED_RATIO}
    most = max(rows.values(), key=_beyond, default=None)
    slow = [finding for finding in given if _is_slow(finding)]
    found = []
    for finding in given:
        row = rows.get(replayed_kind(finding) or "")
        if row is not None:
            others = [named(one) for one in slow]
            found.append(_together(_alone(finding, row), row, others, row["together_ns"] - row["slow_ns"]))
        elif most is not None and _is_slow(finding):
            others = [named(one) for one in slow if one is not finding]
            about = [one for one in given if replayed_kind(one) == most["kind"]]
            last = most["together_ns"] - most["alone_ns"] if about else None
            found.append(_together(finding, most, [*others, named(about[0]) if about else most["kind"]], last))
        else:
            found.append(finding)
    return found


def _beyond(row: dict[str, int]) -> int:
    return row["together_ns"] - row["slow_ns"] - row["alone_ns"]


def _alone(finding: Finding, row: dict[str, int]) -> Finding:
    """The finding with a range that holds what it saves while slow ranks are as slow."""
    if row["alone_ns"] >= finding.saving_low_ns:
        return finding
    evidence = {**finding.evidence, "while_slow_ns": row["alone_ns"]}
    return replace(finding, saving_low_ns=row["alone_ns"], evidence=evidence)


def _together(finding: Finding, row: dict[str, int], others: list[str], last_ns: int | None) -> Finding:
    """The finding with what it saves together with others, if that is worth a sentence, and a range that holds what it
    saves once these are mended (`last_ns`; None if no finding says how)."""
    if _beyond(row) < MORE * row["step_ns"]:
        return finding
    together: dict[str, Any] = {
        "together_ns": row["together_ns"],
        "together_ratio": row["together_ns"] / row["step_ns"],
        "together_with": others,
    }
    if last_ns is not None:
        together["last_ns"] = last_ns
    high = max(finding.saving_high_ns, last_ns or 0)
    return replace(finding, saving_high_ns=high, evidence={**finding.evidence, **together})


def _is_slow(finding: Finding) -> bool:
    return finding.rule == SLOW_RANK and finding.saving_ns > 0 and finding.per in ("step", "iteration")


def named(finding: Finding) -> str:
    """A finding in a list: its rule, and its kind of time or ranks."""
    claim = RULES[finding.rule].claim
    ranks = ", ".join(map(str, finding.ranks[:MOST])) + ("..." if len(finding.ranks) > MOST else "")
    what = f"rank {ranks}" if _is_slow(finding) else "" if claim is None else claim.time_of(finding)
    return f"{finding.rule} ({what})" if what else finding.rule
