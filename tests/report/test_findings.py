"""Findings as data for programs."""

from __future__ import annotations

import pytest

from stepscope.advice import Finding
from stepscope.report.findings import SAVINGS, finding_rows


@pytest.mark.parametrize(
    ("saving_ns", "evidence", "shown"), [(0, {}, None), (0, {"claimed_by": ["idle-time"]}, 0), (7, {}, 7)]
)
def test_a_saving_is_zero_only_if_others_claim_it(
    saving_ns: int, evidence: dict[str, list[str]], shown: object
) -> None:
    parameters = {"ranks": [0], "reason": None, "no_reason": 1, "lines": ["Fuse."], "more": None}
    found = Finding("ai-cpu", "ai_cpu", parameters, saving_ns, saving_ns, evidence=evidence, replayed=True)

    (row,) = finding_rows([found]).to_dicts()

    assert [row[name] for name in SAVINGS] == [shown] * 4
