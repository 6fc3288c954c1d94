"""Faults that hide one another: what each saves alone, and both together. The truth is a simulation without them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from simulated.faults import Fault, kernels, launches
from simulated.frames import run_of
from simulated.layouts import US, Shape
from simulated.truth import Job
from stepscope.advice import advise, worded
from stepscope.report.answers import answers
from stepscope.report.verdict import verdict

HOST_BOUND = Shape(ranks=4, steps=4, kernel_ns=12 * US, gap_ns=8 * US, layers=8, layer_bytes=2_000_000)
DEVICE = Fault("computing", "rank", (1,), kernels(6.0))
HOSTS = Fault("dispatch", "job", tuple(range(4)), launches(80 * US))
BOTH = Job("both", HOST_BOUND, [DEVICE, HOSTS])


def test_each_alone_and_both_together_save_what_a_simulation_without_them_does() -> None:
    run = run_of(BOTH)
    [row] = run.analyse("joint_savings").filter(kind="dispatch").to_dicts()

    assert row["slow_ns"] == pytest.approx(BOTH.loss_without(DEVICE), rel=0.02)
    assert row["alone_ns"] == pytest.approx(BOTH.loss_without(HOSTS), rel=0.04)
    assert row["together_ns"] == pytest.approx(BOTH.mean_loss_ns, rel=0.03)
    assert row["together_ns"] > 2.5 * (row["slow_ns"] + row["alone_ns"])


def test_both_findings_and_the_verdict_say_that_they_hide_each_other() -> None:
    run = run_of(BOTH)
    [row] = run.analyse("joint_savings").filter(kind="dispatch").to_dicts()
    idle, slow = (next(one for one in advise(run) if one.rule == rule) for rule in ("idle-time", "slow-rank"))

    assert idle.evidence["together_ns"] == slow.evidence["together_ns"] == row["together_ns"]
    assert idle.evidence["together_with"] == ["slow-rank (rank 1)"]
    assert slow.evidence["together_with"] == ["idle-time (dispatch)"]
    # From what it saves alone to what it saves once the other is mended.
    assert idle.saving_low_ns == row["alone_ns"] and idle.saving_high_ns == row["together_ns"] - row["slow_ns"]
    assert slow.saving_low_ns <= row["slow_ns"] and slow.saving_high_ns == row["together_ns"] - row["alone_ns"]
    assert "Mended together with slow-rank (rank 1), all of it saves up to" in worded(idle).saving
    assert "hide each other: mended together, they save up to" in verdict(answers(run))
    assert "\u76f8\u4e92\u63a9\u76d6" in verdict(answers(run), "zh")


def test_faults_that_do_not_hide_each_other_have_no_sentence() -> None:
    job = Job(
        "one", replace(HOST_BOUND, kernel_ns=100 * US, gap_ns=3 * US), [Fault("computing", "rank", (1,), kernels(1.3))]
    )
    [slow] = [one for one in advise(run_of(job)) if one.rule == "slow-rank"]

    assert "together_ns" not in slow.evidence
