"""Single steps that take far longer than the others, and what they spend the time on."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from simulated.faults import Fault, kernels, stops
from simulated.layouts import Shape
from simulated.on_cpu import cpu_programs
from simulated.recording import recorded
from simulated.truth import Job
from stepscope.advice import advise, worded
from stepscope.report.answers import answers
from stepscope.report.verdict import verdict
from stepscope.run import Run
from stepscope.tables import STEPS
from tests.advice.test_lost_time_rules import on_cpu
from tests.analysis.jobs import MS, job

LONG = 4600 * MS


def outliers(run: Run) -> list[tuple[int, int, str, int]]:
    return run.analyse("outlier_steps").select("step", "rank", "kind", "alike").rows()


def test_equal_steps_have_none() -> None:
    assert outliers(job()) == []


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_step_in_which_one_rank_computes_longer_is_named_with_its_cost(ranks: int) -> None:
    run = job(ranks, 10, once_ns={("compute", 5, ranks - 1): LONG})

    (finding,) = [one for one in advise(run) if one.rule == "long-step"]

    assert outliers(run) == [(5, ranks - 1, "computing", 1)]
    assert finding.saving_ns == pytest.approx(LONG / 10, rel=0.005)
    assert finding.saving_low_ns == pytest.approx(0.95 * finding.saving_ns)
    assert finding.ranks == [ranks - 1]
    assert f"Computing takes far longer in step 5 on rank {ranks - 1}: 4.60 s more than" in verdict(answers(run))


def test_what_a_slow_step_of_the_only_rank_costs_is_claimed_once() -> None:
    run = job(1, 10, once_ns={("compute", 5, 0): LONG})

    assert outliers(run) == [(5, 0, "computing", 1)]
    (saving,) = [one.saving_ns for one in advise(run) if one.saving_ns]
    assert saving == pytest.approx(LONG / 10, rel=0.005)


def test_steps_that_only_wait_for_a_late_rank_are_no_outliers_of_their_own() -> None:
    run = job(3, 10, once_ns={("data", 6, 1): LONG})

    assert outliers(run) == [(5, 1, "data_loading", 1)]  # a window ends with the next step's first kernel
    assert [one.saving_ns for one in advise(run) if one.rule == "long-step"] == [pytest.approx(LONG / 10, rel=0.001)]
    assert "tep 6" not in verdict(answers(run))


def test_several_stalls_of_one_rank_are_named_together_though_half_of_the_steps_are_long() -> None:
    """What a host without a device stops for is the cause of its idle time, and other long steps hide nothing."""
    shape = Shape(ranks=2, steps=8, kernel_ns=MS, layers=2, kernel_noise=0.0, host_noise=0.0)
    stalls = Fault("dispatch", "rank", (1,), stops(110 * MS), steps=frozenset({2, 5}))
    slow = Fault("computing", "job", (0, 1), kernels(3.0), steps=frozenset({6, 7}))
    job_ = Job("stalls", shape, [stalls, slow], on_cpu=True, source=cpu_programs)

    with recorded(job_) as run:
        (finding,) = [one for one in advise(run) if one.rule == "long-step"]

    assert worded(finding).summary.startswith("Nothing that was recorded runs in steps 5,8 on rank 1: 2")
    assert finding.saving_ns == pytest.approx(job_.loss_without(stalls), rel=0.05)


def test_a_rank_that_is_late_in_every_step_and_once_far_later_is_named_for_that_step() -> None:
    run = job(3, 4, data_ns={1: 60 * MS}, once_ns={("data", 4, 1): 120 * MS})

    assert outliers(run) == [(3, 1, "data_loading", 1)]  # it was called a long communication of the others


def test_all_ranks_that_are_late_are_counted() -> None:
    run = job(3, 10, once_ns={("compute", 5, rank): LONG for rank in range(3)})

    (finding,) = [one for one in advise(run) if one.saving_ns]

    assert outliers(run) == [(5, 0, "computing", 3)]
    assert finding.ranks == []
    assert finding.saving_ns == pytest.approx(LONG / 10, rel=0.005)


def test_of_two_steps_the_one_in_which_only_one_rank_stops_is_the_long_one() -> None:
    run = job(3, 2, once_ns={("data", 2, 1): 150 * MS})

    (finding,) = [one for one in advise(run) if one.rule == "long-step"]

    assert run.analyse("outlier_steps").is_empty()
    assert run.analyse("single_stalls").select("step", "rank", "kind").rows() == [(2, 1, "data_loading")]
    assert (finding.where, finding.severity) == ({"rank": 1, "steps": [2]}, "medium")
    assert finding.saving_ns == pytest.approx(75 * MS, rel=0.05)
    assert "so few steps, chance cannot be ruled out" in worded(finding).cause


def test_what_another_rule_claims_is_not_claimed_again() -> None:
    run = Run.from_frames({0: on_cpu(lambda step: LONG if step == 7 else 0, steps=20)})

    assert outliers(run) == [(7, 0, "other", 1)]
    assert [one.rule for one in advise(run)] == ["idle-time"]


def test_start_up_is_not_claimed() -> None:
    run = job(1, 10, once_ns={("compute", 1, 0): LONG})

    assert run.analyse("outlier_steps")["is_first"].to_list() == [True]
    assert [one.rule for one in advise(run)] == ["exposed-communication"]


def test_of_two_steps_none_is_known_to_be_ordinary() -> None:
    (finding,) = [one for one in advise(job(1, 2, once_ns={("compute", 2, 0): LONG})) if one.rule == "long-step"]

    assert (finding.saving_ns, finding.severity) == (0, "medium")
    assert outliers(job(1, 2, once_ns={("compute", 2, 0): 100 * MS})) == []


@pytest.mark.parametrize(("step", "moved"), [(1, {"start_ns": -LONG}), (5, {"end_ns": LONG})])
def test_what_the_host_does_before_and_after_all_device_work_counts(step: int, moved: dict[str, int]) -> None:
    run = job(1)
    steps = run.table("steps").drop("rank").collect()
    here = pl.col("step") == step
    shifts = [pl.when(here).then(pl.col(name) + ns).otherwise(name).alias(name) for name, ns in moved.items()]
    tables = {name: run.table(name).drop("rank").collect() for name in ("kernels", "collectives", "slices", "ranks")}
    run = Run.from_frames({0: {**tables, "steps": STEPS.conform(steps.with_columns(shifts))}})

    assert run.analyse("outlier_steps").select("step", "kind").rows() == [(step, "outside")]
    assert "4.6" in verdict(answers(run))
