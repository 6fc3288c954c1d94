"""Findings as rows, for spreadsheets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from stepscope.advice import Finding


def finding_rows(findings: Sequence[Finding]) -> pl.DataFrame:
    """One row a finding, in their order: `rule`, `severity`, `summary`, `cause`, `action`, `saving_ns`,
    `saving_ratio`, and what it is about (`where`) as JSON."""
    texts = dict.fromkeys(("rule", "severity", "summary", "cause", "action"), pl.String())
    schema = {**texts, "saving_ns": pl.Int64(), "saving_ratio": pl.Float64(), "where": pl.String()}
    rows = [
        (
            f.rule,
            f.severity,
            f.summary,
            f.cause,
            f.action,
            f.saving_ns,
            f.saving_ratio,
            json.dumps(f.where, default=str),
        )
        for f in findings
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")
