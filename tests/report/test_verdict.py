"""The verdict leads with what costs most."""

from __future__ import annotations

import polars as pl

from stepscope.advice import Finding
from stepscope.analysis.job.time_by_rank import time_by_rank
from stepscope.report.answers import Answers
from stepscope.report.verdict import NAMED, verdict


def breakdown(*parts_ms: tuple[int, int, int]) -> pl.DataFrame:
    """One row a step of computing, exposed communication and idle time in ms."""
    ns = [[part * 10**6 for part in parts] for parts in parts_ms]
    return pl.DataFrame(
        {
            "rank": [0] * len(ns),
            "step": range(len(ns)),
            "window_ns": [sum(parts) for parts in ns],
            "computing_ns": [parts[0] for parts in ns],
            "communication_not_overlapped_ns": [parts[1] for parts in ns],
            "memory_not_overlapped_ns": [0] * len(ns),
            "free_ns": [parts[2] for parts in ns],
        }
    )


def finding(rule: str, saving_ms: float, where: dict | None = None, evidence: dict | None = None) -> Finding:
    return Finding(
        rule, f"{rule} it is.", "why", "do", round(saving_ms * 1e6), saving_ms / 100, where or {}, evidence or {}
    )


def slow_rank(rank: int, saving_ms: float) -> Finding:
    return finding("slow-rank", saving_ms, {"rank": rank}, {"kind": "computing"})


def test_the_greatest_finding_leads_and_culprits_follow() -> None:
    findings = [slow_rank(7, 7), finding("idle-time", 47)]

    text = verdict(Answers({"breakdown": breakdown((60, 0, 40))}, findings))

    assert text == (
        "idle-time it is. Rank 7 computes slowly (7.00 ms a step, 7%). "
        "The average step takes 100.00 ms: 60% computing, 40% idle."
    )


def test_culprits_come_with_their_cost_the_dearest_first() -> None:
    link = finding("slow-link", 3, {"ranks": [0, 1]}, {"bandwidth_ratio": 0.35})
    group = finding("slow-group", 2, {"group": "g", "group_name": "dp", "ranks": "0, 1"}, {"slowdown_factor": 2.0})

    text = verdict(Answers({"breakdown": breakdown((100, 0, 0))}, [group, slow_rank(6, 2.5), link, slow_rank(2, 5)]))

    assert text.startswith(
        "Rank 2 computes slowly (5.00 ms a step, 5%); "
        "link 0-1 has 35% of the typical bandwidth (3.00 ms a step, 3%); "
        "rank 6 computes slowly (2.50 ms a step, 2%); "
        "group dp (ranks 0, 1) takes 2.0 times as long to transmit as comparable groups (2.00 ms a step, 2%). "
    )


def test_of_many_culprits_the_rest_is_counted() -> None:
    text = verdict(Answers({"breakdown": breakdown((100, 0, 0))}, [slow_rank(n, 5) for n in range(NAMED + 2)]))

    assert "; 2 more are slow." in text


def test_a_single_long_step_is_named_with_its_share_of_the_time() -> None:
    text = verdict(Answers({"breakdown": breakdown((80, 20, 0), (80, 20, 0), (80, 20, 9000))}, []))

    assert "Nothing stands out" not in text
    assert "Step 2 takes 9.10 s, 91 times the median step (98% of the time)." in text
    assert text.endswith(
        "The average step takes 3.10 s (median 100.00 ms): 3% computing, 1% exposed communication, 97% idle."
    )


def test_a_first_step_that_starts_things_up_is_named_and_left_out_of_the_shares() -> None:
    text = verdict(Answers({"breakdown": breakdown((80, 20, 9000), (80, 20, 0), (80, 20, 0))}, []))

    assert text == (
        "Nothing stands out. Step 0 takes 9.10 s, 91 times the median step, as the first one starts things up "
        "(98% of the time). The average step without step 0 takes 100.00 ms: 80% computing, 20% exposed communication."
    )


def test_shares_are_those_of_the_table_of_ranks() -> None:
    stalled = breakdown(*[(30, 0, 2), (30, 0, 2), (30, 0, 2), (30, 0, 62)] * 10)

    text = verdict(Answers({"breakdown": stalled}, []))

    (row,) = time_by_rank(stalled).to_dicts()
    assert (
        f"{row['computing_ns'] / row['window_ns']:.0%} computing, {row['free_ns'] / row['window_ns']:.0%} idle" in text
    )
    assert "64% computing, 36% idle" in text


def test_much_idle_time_is_never_nothing() -> None:
    idle = pl.DataFrame({"rank": [0, 0], "step": [0, 0], "cause": ["python", "dependency"], "idle_ns": [10, 20]})

    text = verdict(Answers({"breakdown": breakdown((40, 0, 60)), "idle": idle}, []))

    assert text.startswith("No single thing to change stands out, but ranks are idle 60% of the time")
    assert "most of it by the cause `dependency`." in text


def test_shares_are_told_even_where_every_step_differs() -> None:
    text = verdict(Answers({"breakdown": breakdown((100, 0, 0), (0, 100, 0), (0, 0, 100))}, []))

    assert "33% computing, 33% exposed communication, 33% idle" in text


def test_without_timed_work_the_reason_is_told() -> None:
    text = verdict(Answers({}, [], {"breakdown": "the recording has no steps"}))

    assert text == "No step could be analysed: the recording has no steps."


def test_without_steps_the_findings_are_told_and_why_no_step_is() -> None:
    answers = Answers({}, [finding("cpu-busy", 0), finding("host-queue", 2)], {"breakdown": "there are no steps"})

    assert verdict(answers) == ("host-queue it is. cpu-busy it is. How a step splits is not known: there are no steps.")


def test_without_steps_and_findings_the_reason_is_all() -> None:
    assert verdict(Answers({}, [], {"breakdown": "there are no steps"})) == (
        "No step could be analysed: there are no steps."
    )
