"""Time that several rules speak of is claimed once."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from stepscope.advice import Finding
from stepscope.advice.claims import claimed_once
from stepscope.advice.rules.exposed_communication import exposed_communication


def finding(rule: str, saving_ns: int, rank: int | None = None, **evidence: Any) -> Finding:
    where = {} if rank is None else {"rank": rank}
    return Finding(rule, rule, {}, saving_ns, saving_ns / 1000, where=where, evidence=evidence)


def savings(*findings: Finding) -> dict[str, int]:
    return {one.rule: one.saving_ns for one in claimed_once(findings)}


def test_a_late_start_claims_what_the_causes_of_idle_time_leave() -> None:
    start = finding("iteration-interval", 90)

    assert savings(start, finding("idle-time", 60, cause="dispatch"))["iteration-interval"] == 30
    assert savings(start, finding("idle-time", 95, cause="data_loading"))["iteration-interval"] == 0
    (_, less) = claimed_once([start, finding("idle-time", 60, cause="dispatch")])
    assert less.saving_ratio == pytest.approx(0.03)
    assert less.evidence["claimed_by"] == ["idle-time"]


def test_a_finding_that_saves_nothing_claims_nothing() -> None:
    (_, start) = claimed_once([finding("iteration-interval", 90), finding("host-queue", 0)])

    assert (start.saving_ns, start.evidence) == (90, {})


def test_waits_for_input_are_claimed_one_after_the_other() -> None:
    told = savings(finding("iteration-interval", 90), finding("data-queue", 50), finding("host-queue", 20))

    assert told == {"host-queue": 20, "data-queue": 30, "iteration-interval": 40}


def test_findings_of_one_rule_are_about_different_times() -> None:
    two = [finding("data-queue", 50), finding("data-queue", 20)]

    assert claimed_once(two) == two


def test_a_slow_host_is_no_wait_for_input() -> None:
    assert savings(finding("data-queue", 50), finding("idle-time", 60, cause="dispatch"))["data-queue"] == 50


@pytest.mark.parametrize(("rule", "kind"), [("compile-time", "compile"), ("checkpoint", "checkpoint")])
def test_what_a_slow_rank_stops_for_is_claimed_once(rule: str, kind: str) -> None:
    slow = finding("slow-rank", 60, 3, kind=kind)

    assert savings(slow, finding(rule, 50, 3))[rule] == 0
    assert savings(slow, finding(rule, 50, 2))[rule] == 50
    assert savings(finding("slow-rank", 60, 3, kind="dispatch"), finding(rule, 50, 3))[rule] == 50
    assert savings(finding(rule, 60, 3), finding("host-queue", 50, 3))["host-queue"] == 50


def test_a_slow_rank_claims_nothing_of_others() -> None:
    slow = finding("slow-rank", 60, 3, kind="data_loading")

    assert savings(slow, finding("data-queue", 50, 3))["data-queue"] == 0
    assert savings(slow, finding("data-queue", 50, 2))["data-queue"] == 50
    assert savings(slow, finding("idle-time", 50, cause="data_loading"))["idle-time"] == 50  # of the typical rank
    assert savings(finding("slow-rank", 60, 3, kind="computing"), finding("data-queue", 50, 3))["data-queue"] == 50


def test_other_findings_stay_as_they_are() -> None:
    others = [finding("memory-copies", 40), finding("pipeline-bottleneck", 0, kind="map"), finding("slow-link", 7)]

    assert claimed_once([*others, finding("iteration-interval", 90)])[:3] == others
    assert savings(*others, finding("iteration-interval", 90))["iteration-interval"] == 90


def test_transmission_of_a_slow_group_is_not_claimed_again() -> None:
    breakdown = pl.DataFrame({"rank": [0], "step": [1], "window_ns": [1000]})
    segments = pl.DataFrame({"rank": [0], "step": [1], "transmit_ns": [400], "wait_ns": [0], "unsplit_ns": [0]})
    groups = pl.DataFrame({"group": ["a", "a"], "cost_ns": [200, 100]})

    (alone,) = exposed_communication(segments, breakdown, None, None, None)
    (beside,) = exposed_communication(segments, breakdown, None, groups, None)

    assert (alone.saving_ns, beside.saving_ns) == (200, 50)
