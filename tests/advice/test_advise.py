"""Advice about made-up jobs."""

from __future__ import annotations

from stepscope.advice import advise
from tests.analysis.jobs import MS, job


def test_the_dearest_finding_comes_first_and_names_the_rank() -> None:
    findings = advise(job(compute={6: 1.5}, gap_ns={2: 1 * MS}))

    assert findings[0].rule == "slow-rank"
    assert findings[0].where == {"rank": 6}
    assert findings[0].severity == "high"
    assert [f.saving_ns for f in findings] == sorted((f.saving_ns for f in findings), reverse=True)


def test_a_healthy_job_gets_no_advice() -> None:
    assert [f.rule for f in advise(job()) if f.rule.startswith("slow")] == []


def test_all_ranks_waiting_for_data_is_one_finding_about_the_input() -> None:
    findings = advise(job(data_ns=dict.fromkeys(range(8), 10 * MS)))

    assert findings[0].evidence["cause"] == "data_loading"
    assert abs(findings[0].saving_ns - 11 * MS) < MS
    assert "slow-rank" not in {f.rule for f in findings}
