"""What replays of the job say about savings: how much they are at most, and how far the replay is off."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from stepscope.advice.finding import Finding
from stepscope.advice.messages import Text
from stepscope.analysis.methods.saving_range import TRUSTED_RATIO

OFF = Text(
    "[; the replay is {error_ratio:percent} off the recording, so this is uncertain]",
    "[；重放与记录相差 {error_ratio:percent}，因此不确定]",
)
"""End of a basis; parameter `error_ratio`, as `replay_error` gives it."""


def replay_error(row: dict[str, Any]) -> float | None:
    """How far the replay is off (`error_ratio`), if that is too far to be certain."""
    error = abs(row["error_ratio"] or 0.0)
    return error if error > TRUSTED_RATIO else None


def at_most(finding: Finding, limit_ns: int) -> Finding:
    """The finding with a saving of at most this, as a replay shows."""
    if finding.saving_ns <= limit_ns:
        return replace(finding, replayed=True)
    return replace(
        finding,
        replayed=True,
        saving_ns=limit_ns,
        saving_ratio=finding.saving_ratio * limit_ns / finding.saving_ns,
        saving_low_ns=min(finding.saving_low_ns, limit_ns),
        evidence={**finding.evidence, "replayed_ns": limit_ns},
    )


def item_ns(item: str, savings: pl.DataFrame | None) -> int | None:
    """What a replay saves without something; None if it is not known, or if the replay is too far off.

    Args:
        item: What.
        savings: `call_savings`; None if the job cannot be replayed.
    """
    if savings is None:
        return None
    trusted = savings.filter((pl.col("item") == item) & (pl.col("error_ratio").abs() <= TRUSTED_RATIO))
    return int(trusted["saving_ns"][0]) if trusted.height else None


def within_item(finding: Finding, item: str, savings: pl.DataFrame | None) -> Finding:
    """The finding with a saving of at most what a replay saves without something, see `item_ns`."""
    limit_ns = item_ns(item, savings)
    return finding if limit_ns is None or not finding.saving_ns else at_most(finding, limit_ns)
