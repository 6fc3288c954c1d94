"""When a finding costs most, so that it can be looked up in a timeline."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from stepscope.advice.finding import Finding
from stepscope.advice.registry import Rule


def with_span(finding: Finding, rule: Rule, breakdown: pl.DataFrame | None) -> Finding:
    """The finding with the longest of its steps on its worst rank, if its rule names no moment itself.

    Its steps are those that it names, else all of that rank but the first, which starts things up. What is no matter of
    steps, such as a setting, has no moment, and a window that is the whole recording shows no more than that.

    Args:
        finding: A finding of that rule.
        rule: The rule.
        breakdown: The answer of that name about the whole job; None if there is none.
    """
    if finding.span_ns is not None or breakdown is None or finding.per == "recording":
        return finding
    steps = finding.where.get("steps") or finding.evidence.get("slow_steps") or []
    if rule.claim is None and not steps:
        return finding
    worst = finding.parameters.get("worst_rank")
    ranks = [worst] if worst is not None else finding.ranks
    rows = breakdown.filter(pl.col("rank").is_in(ranks)) if ranks else breakdown
    named = rows.filter(pl.col("step").is_in([step for step in steps if isinstance(step, int)]))
    if named.is_empty():
        is_first = pl.col("step") == pl.col("step").min().over("rank")
        named = rows.filter(~is_first | (pl.len().over("rank") == 1))
    if named.is_empty():
        return finding
    longest = named.sort("window_ns", "rank", "step", descending=[True, False, False]).row(0, named=True)
    start: int = longest["window_start_ns"]
    return replace(finding, span_ns=(start, start + longest["window_ns"]), span_rank=longest["rank"])
