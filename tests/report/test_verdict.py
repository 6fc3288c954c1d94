"""The verdict leads with what costs most."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.advice import Finding
from stepscope.analysis.job.time_by_rank import time_by_rank
from stepscope.report.answers import Answers
from stepscope.report.verdict import NAMED, verdict

RATES = {"bandwidth": 1e9, "typical_bandwidth": 3e9}


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


def finding(rule: str, message: str, saving_ms: float, **parameters: Any) -> Finding:
    return Finding(rule, message, parameters, round(saving_ms * 1e6), saving_ms / 100)


def slow_rank(rank: int, saving_ms: float) -> Finding:
    return finding("slow-rank", "computing", saving_ms, rank=rank)


def idle(saving_ms: float) -> Finding:
    """A finding that accuses nobody."""
    lost = {"idle_ns": saving_ms * 1e6, "step_ns": 10**8, "ratio": saving_ms / 100}
    unknown = dict.fromkeys(("lost_ns", "recorded_ns", "when", "mostly"))
    return finding("idle-time", "python", saving_ms, job_ranks=2, functions=[], **lost, **unknown)


def queue(saving_ms: float) -> Finding:
    found = {"ranks": [0], "worst_rank": None, "empty": 1, "batches": 2, "empty_ratio": 0.5, "operators": []}
    return finding("host-queue", "empty", saving_ms, **found)


def busy() -> Finding:
    found = {"ranks": [0], "worst_rank": None, "busy_ratio": 0.9, "process_processors": None, "processors": None}
    return finding("cpu-busy", "busy", 0, **found)


def test_the_greatest_finding_leads_and_culprits_follow() -> None:
    findings = [slow_rank(7, 7), idle(47)]

    text = verdict(Answers({"breakdown": breakdown((60, 0, 40))}, findings))

    assert text == (
        "The median rank runs Python code outside any operator: 47.0 ms of a 100 ms step (47%). "
        "Rank 7 computes slowly (7.00 ms per step, 7%). "
        "The average step takes 100.00 ms: 60% computing, 40% idle."
    )


def test_culprits_come_with_their_cost_the_dearest_first() -> None:
    link = finding("slow-link", "slow", 3, rank_a=0, rank_b=1, bandwidth_ratio=0.35, transport="", cost_ns=0, **RATES)
    group = finding("slow-group", "slow", 2, group="dp", ranks="0, 1", slowdown_factor=2.0, cost_ns=0)

    text = verdict(Answers({"breakdown": breakdown((100, 0, 0))}, [group, slow_rank(6, 2.5), link, slow_rank(2, 5)]))

    assert text.startswith(
        "Rank 2 computes slowly (5.00 ms per step, 5%); "
        "link 0-1 has 35% of the typical bandwidth (3.00 ms per step, 3%); "
        "rank 6 computes slowly (2.50 ms per step, 2%); "
        "group dp (ranks 0, 1) takes 2.0x as long to transmit as comparable groups (2.00 ms per step, 2%). "
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
    causes = pl.DataFrame({"rank": [0, 0], "step": [0, 0], "cause": ["python", "dependency"], "idle_ns": [10, 20]})

    text = verdict(Answers({"breakdown": breakdown((40, 0, 60)), "idle": causes}, []))

    assert text.startswith("No single thing to change stands out, but ranks are idle 60% of the time")
    assert "mostly with the cause `dependency`." in text


def test_shares_are_told_even_where_every_step_differs() -> None:
    text = verdict(Answers({"breakdown": breakdown((100, 0, 0), (0, 100, 0), (0, 0, 100))}, []))

    assert "33% computing, 33% exposed communication, 33% idle" in text


def test_without_timed_work_the_reason_is_told() -> None:
    text = verdict(Answers({}, [], {"breakdown": "the recording has no steps"}))

    assert text == "No step could be analysed: the recording has no steps."


def test_without_steps_the_findings_are_told_and_why_no_step_is() -> None:
    answers = Answers({}, [busy(), queue(2)], {"breakdown": "there are no steps"})

    assert verdict(answers) == (
        "Rank 0 makes batches too slowly: 1 of 2 batches (50%) found the host queue empty. "
        "Rank 0 runs on a busy host: 90% of its CPU is in use. How a step splits is unknown: there are no steps."
    )


def test_without_steps_and_findings_the_reason_is_all() -> None:
    assert verdict(Answers({}, [], {"breakdown": "there are no steps"})) == (
        "No step could be analysed: there are no steps."
    )
