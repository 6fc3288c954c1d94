"""A short version of the benchmark of the detector: simulated jobs of each family, and a healthy one."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))

from live_detect import run
from simulated_live.catalogue import FACTORS, FAMILIES, cases, healthy
from simulated_live.jobs import Fault, Job, Layout
from simulated_live.printing import described
from simulated_live.simulate import Simulation

SHORT = ("compute", "data", "host", "send", "several", "recovering", "lengths known")


@pytest.mark.parametrize("family", SHORT)
def test_faults_of_a_family_are_found_and_nobody_else_is_blamed(family: str) -> None:
    job = next(job for job in cases(40, 7, (1.3,), family) if job.family == family and job.layout.world <= 64)

    result = run(job)

    assert result.found == result.faults > 0, result.misses
    assert result.false == 0, result.misses


def test_a_healthy_job_of_a_quarter_of_an_hour_is_left_alone() -> None:
    job = next(iter(healthy(0.25, 50_000)))

    result = run(job)

    assert result.false == 0
    assert result.hours > 0.2


def test_results_are_printed_beside_those_of_published_rules() -> None:
    job = replace(next(iter(cases(1, 3, FACTORS))), layout=Layout(data=8))
    job = replace(job, faults=(Fault("compute", 2.0, (5,), 80),), steps=140)

    lines = described([run(job)])

    assert any(line.startswith("fixed 30 %") for line in lines)
    assert any(line.startswith("precision 1.0") for line in lines)


def test_each_family_makes_jobs_with_faults() -> None:
    jobs = list(cases(len(FAMILIES), 0, FACTORS))

    assert [job.family for job in jobs] == list(FAMILIES)
    assert all(job.faults for job in jobs)


def test_in_a_simulated_job_the_others_wait_for_the_late_rank() -> None:
    job = Job("", Layout(data=4), steps=20, faults=(Fault("compute", 3.0, (2,)),))

    *_, (_, digests) = Simulation(job).steps()

    waits = [(digest.backward_ns or 0) - (digest.backward_own_ns or 0) for digest in digests]
    assert waits.index(min(waits)) == 2
    assert max(digest.step_ns for digest in digests) < 1.2 * min(digest.step_ns for digest in digests)
