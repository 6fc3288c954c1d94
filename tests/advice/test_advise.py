"""Advice about made-up jobs."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.advice import Finding, advise, worded
from stepscope.advice.advise import ranked
from stepscope.advice.rules.slow_rank import slow_rank
from stepscope.report.answers import answers
from stepscope.report.verdict import verdict
from tests.advice.examples import breakdown, slow_ranks
from tests.analysis.jobs import MS, job


def test_the_dearest_finding_comes_first_and_names_the_rank() -> None:
    findings = advise(job(compute={6: 1.5}, gap_ns={2: 1 * MS}))

    assert findings[0].rule == "slow-rank"
    assert findings[0].where == {"rank": 6}
    assert findings[0].severity == "high"
    assert [f.saving_ns for f in findings] == sorted((f.saving_ns for f in findings), reverse=True)


def test_a_small_saving_stands_below_a_graver_problem_of_unknown_saving() -> None:
    small = Finding("cpu-busy", "busy", saving_ns=MS, saving_ratio=0.01)
    grave = Finding("memory-leak", "leak", least="medium")

    assert ranked([small, grave]) == [grave, small]


def test_of_two_ranks_the_slow_one_is_compared_with_the_other() -> None:
    (two, *_), (four, *_) = (
        list(slow_rank(slow_ranks(), pl.concat(breakdown().with_columns(rank=rank) for rank in range(ranks))))
        for ranks in (2, 4)
    )

    assert "than the other rank" in worded(two).summary and "on the other rank." in worded(two).cause
    assert "比另一个 rank 多" in worded(two, "zh").summary
    assert "than the median rank" in worded(four).summary and "on the median rank." in worded(four).cause


def test_a_comparison_of_few_steps_is_called_so() -> None:
    one, two, several = (
        worded(next(iter(slow_rank(slow_ranks().with_columns(steps=pl.lit(steps)), breakdown())))).cause
        for steps in (1, 2, 3)
    )

    assert one == f"{several} Only 1 step could be compared: record more to rule out chance."
    assert two == f"{several} Only 2 steps could be compared: record more to rule out chance."


def test_a_healthy_job_gets_no_advice() -> None:
    assert [f.rule for f in advise(job()) if f.rule.startswith("slow")] == []


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        ("compile: forward", "spends time compiling"),
        ("checkpoint: torch.save", "spends time on checkpoints"),
        ("generation 2", "spends time on garbage collection"),
    ],
)
def test_a_rank_that_stops_for_something_is_not_said_to_dispatch_late(marked: str, words: str) -> None:
    found = answers(job(gap_ns={2: 2 * MS}, marked=marked))
    (slow,) = [finding for finding in found.findings if finding.rule == "slow-rank"]

    assert worded(slow).summary.startswith(f"Rank 2 {words}: ")
    assert f"rank 2 {words} (" in verdict(found).lower()
    assert "dispatch" not in verdict(found)
    others = [finding for finding in found.findings if finding.rule in ("compile-time", "checkpoint")]
    assert (others or marked == "generation 2") and sum(
        finding.saving_ns for finding in others
    ) < MS / 2  # of 8 ms, which are claimed


def test_all_ranks_waiting_for_data_is_one_finding_about_the_input() -> None:
    findings = advise(job(data_ns=dict.fromkeys(range(8), 10 * MS)))

    assert findings[0].evidence["cause"] == "data_loading"
    assert abs(findings[0].saving_ns - 11 * MS) < MS
    assert "slow-rank" not in {f.rule for f in findings}
