"""Findings as rows, for spreadsheets and programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.advice import Language, worded
from stepscope.advice.messages import Text, fill

if TYPE_CHECKING:
    from stepscope.advice import Finding

WORDS = ("summary", "cause", "action", "saving_basis")
"""What is put into words in one language."""

SAVINGS = ("saving_ns", "saving_low_ns", "saving_high_ns", "saving_ratio")

CAUSE, ACTION = Text("Why: {cause}", "原因：{cause}"), Text("Fix: {action}", "措施：{action}")
SAVING = Text("{saving}; severity: {severity}", "{saving}；严重程度：{severity}")
ALSO = Text("Also (causes and fixes: --json):", "其他（原因和措施见 --json）：")
SEVERITIES_ZH = {"high": "高", "medium": "中", "low": "低"}

COLUMNS = {
    **dict.fromkeys(("rule", "severity", "summary", "cause", "action"), pl.String()),
    **dict.fromkeys(("saving_ns", "saving_low_ns", "saving_high_ns"), pl.Int64()),
    "saving_basis": pl.String(),
    "saving_ratio": pl.Float64(),
    "per": pl.String(),
    "where": pl.String(),
}


def finding_lines(finding: Finding, language: Language = "en") -> tuple[str, str, str, str]:
    """A finding in four lines: summary, cause, action, and saving with severity."""
    words = worded(finding, language)
    severity = SEVERITIES_ZH[finding.severity] if language == "zh" else finding.severity
    known = {**vars(words), "severity": severity}
    return words.summary, fill(CAUSE, known, language), fill(ACTION, known, language), fill(SAVING, known, language)


def finding_rows(findings: Sequence[Finding], language: Language = "en") -> pl.DataFrame:
    """One row a finding, in their order, with the columns of `COLUMNS`; what it is about (`where`) as JSON."""
    rows = [plain_finding(finding, language) for finding in findings]
    texts = [{**row, "where": json.dumps(row["where"], default=str)} for row in rows]
    return pl.DataFrame([[row[name] for name in COLUMNS] for row in texts], schema=COLUMNS, orient="row")


def plain_finding(finding: Finding, language: Language = "en") -> dict[str, Any]:
    """A finding with its words, and with the severity that its saving, or what else it threatens, gives it.

    A saving of 0 is unknown, thus None, unless other findings claim it, or a replay shows that nothing is saved.
    """
    words = worded(finding, language)
    plain = {**asdict(finding), "severity": finding.severity, **{name: getattr(words, name) for name in WORDS}}
    del plain["least"], plain["most"]  # they are in the severity
    if finding.saving_ns <= 0 and not {"claimed_by", "replayed_ns"} & {*finding.evidence}:
        plain.update(dict.fromkeys(SAVINGS))
    return plain
