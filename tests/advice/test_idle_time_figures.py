"""The figures of one finding about idle time agree with one another and with its saving."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from simulated.faults import Fault, stops, waits_for_data
from simulated.frames import run_of
from simulated.layouts import MS, Shape
from simulated.truth import Job
from stepscope.advice import advise, worded
from stepscope.advice.rules.idle_time import _each

DATA = Shape(ranks=2, steps=10, layers=6)
ALL = (0, 1)
ONCE = Fault("outlier", "job", ALL, stops(900 * MS), steps=frozenset({6}))
ALWAYS = Fault("data_loading", "job", ALL, waits_for_data(15 * MS))


@pytest.mark.parametrize(("faults", "per_step"), [([ALWAYS], True), ([ONCE, ALWAYS], True)])
def test_time_lost_and_saving_are_the_same_share(faults, per_step) -> None:
    """One step of a second among steps of 20 ms: the share of the recording is that of the mean step."""
    run = run_of(Job("long", DATA, faults))
    finding = next(one for one in advise(run) if one.rule == "idle-time")
    known = finding.parameters

    assert known["ratio"] == pytest.approx(finding.saving_ratio, rel=1e-3)
    assert (known["idle_ns"] is not None) == per_step
    if per_step:
        assert known["idle_ns"] == pytest.approx(finding.saving_ns, abs=1)
        assert known["left_out"] == 2 and "not counting 2 steps at start and end" in worded(finding).summary
    else:
        assert known["lost_ns"] == pytest.approx(10 * finding.saving_ns, rel=1e-3)


def test_functions_have_their_time_in_a_step_if_the_idle_time_is_one_of_a_step() -> None:
    sleep = {"name": "time.sleep", "idle_ns": 155 * MS, "file": "train.py", "line": 40, "called_by": None}
    assert _each([sleep], 10) == [{**sleep, "idle_ns": 15.5 * MS}]
