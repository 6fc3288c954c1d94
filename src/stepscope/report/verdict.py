"""The answer in one or two sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.advice.slow_rank import VERBS
from stepscope.present import duration

if TYPE_CHECKING:
    from stepscope.report.answers import Answers

SPLIT = {
    "computing_ns": "computing",
    "communication_not_overlapped_ns": "exposed communication",
    "memory_not_overlapped_ns": "exposed memory operations",
    "free_ns": "idle",
}


def verdict(answers: Answers) -> str:
    """What costs this job the time: slow ranks and links first, else the largest finding, else how time splits."""
    breakdown = answers.tables.get("breakdown")
    if breakdown is None or breakdown.is_empty():
        return "No step could be analysed: " + answers.unavailable.get("breakdown", "there is no timed work")
    step_ns = breakdown.select(pl.col("window_ns").median()).item()
    parts = [f"The median step takes {duration(step_ns)}: {_split(breakdown)}."]
    culprits = [*_slow_ranks(answers), *_slow_links(answers), *_slow_groups(answers)]
    if culprits:
        parts.insert(0, "; ".join(culprits) + ".")
    elif answers.findings:
        parts.insert(0, answers.findings[0].summary)
    elif "slow_ranks" in answers.tables:
        parts.insert(0, "No rank, link or stage stands out.")
    return " ".join(parts)


def _split(breakdown: pl.DataFrame) -> str:
    """Shares of the median step of all ranks."""
    sums = breakdown.select(pl.col("window_ns", *SPLIT).sum()).row(0, named=True)
    shares = {name: sums[column] / max(sums["window_ns"], 1) for column, name in SPLIT.items()}
    return ", ".join(f"{share:.0%} {name}" for name, share in shares.items() if share >= 0.005)


def _slow_ranks(answers: Answers) -> list[str]:
    table = answers.tables.get("slow_ranks")
    if table is None:
        return []
    return [
        f"Rank {row['rank']} {VERBS[row['kind']]} and costs the job {duration(row['cost_ns'])} a step "
        f"({row['cost_ratio']:.0%})"
        for row in table.iter_rows(named=True)
    ]


def _slow_groups(answers: Answers) -> list[str]:
    """Groups are named only where no link is."""
    table = answers.tables.get("slow_groups")
    if table is None or _slow_links(answers):
        return []
    worst = table.unique("group", keep="first", maintain_order=True)
    return [
        f"group {row['group_name'] or row['group']} (ranks {row['ranks']}) takes {row['transmit_ratio']:.1f} times as "
        f"long to transmit as its like"
        for row in worst.iter_rows(named=True)
    ]


def _slow_links(answers: Answers) -> list[str]:
    table = answers.tables.get("slow_links")
    if table is None:
        return []
    return [
        f"link {row['rank_a']}-{row['rank_b']} has {row['bandwidth_ratio']:.0%} of the typical bandwidth"
        for row in table.iter_rows(named=True)
    ]
