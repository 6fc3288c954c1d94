"""What a job saves without a kind of time, whatever its ranks hide of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from simulated.faults import Fault, kernels
from simulated.layouts import Shape
from simulated.on_cpu import cpu_programs
from simulated.recording import recorded
from simulated.truth import Job
from stepscope.analysis.methods.costs import quartiles
from stepscope.errors import StepscopeError
from tests.analysis.jobs import GAP, MS, job

ALL = range(4)


def saved(run, kinds: str, column: str = "saving_ns") -> list[int]:
    return run.analyse("savings", kinds=kinds)[column].to_list()


def test_what_all_ranks_wait_for_is_saved() -> None:
    found = job(ranks=4, data_ns=dict.fromkeys(ALL, 9 * MS)).analyse("savings", kinds="data_loading").row(0, named=True)

    assert found["saving_ns"] == found["alone_ns"] == pytest.approx(9 * MS + GAP, rel=0.001)
    assert found["saving_low_ns"] <= found["saving_ns"] <= found["saving_high_ns"]
    assert found["error_ratio"] == pytest.approx(0, abs=0.001)


def test_what_a_slow_rank_loses_is_left_out() -> None:
    assert saved(job(ranks=4, data_ns={1: 9 * MS}), "data_loading") == pytest.approx([GAP], rel=0.001)


def test_time_that_hides_behind_another_rank_saves_nothing() -> None:
    run = job(ranks=4, gap_ns={1: 2 * MS}, marked="compile: forward", compute={2: 1.5})

    assert saved(run, "compile") == [0]


def test_kinds_of_time_share_what_they_save_together() -> None:
    run = job(ranks=4, data_ns=dict.fromkeys(ALL, 9 * MS), gap_ns=dict.fromkeys(ALL, 2 * MS))
    (data, dispatch), alone = saved(run, "data_loading,dispatch"), saved(run, "data_loading,dispatch", "alone_ns")

    assert data == pytest.approx(alone[0]) == pytest.approx(9 * MS + GAP, rel=0.001)
    assert dispatch == pytest.approx(alone[1]) == pytest.approx(4 * 2 * MS, rel=0.01)


def test_hosts_that_need_not_wait_launch_sooner() -> None:
    run = job(ranks=4, gap_ns=dict.fromkeys(ALL, 2 * MS))

    assert saved(run, "synchronisation")[0] > 4 * MS


def test_hosts_without_a_device_cannot_do_without_the_calls_that_they_wait_for() -> None:
    shape = Shape(ranks=2, steps=3, kernel_ns=500_000, layers=2, layer_bytes=20_000_000)
    slow = Fault("computing", "rank", (1,), kernels(1.5))

    with recorded(Job("on hosts", shape, [slow], on_cpu=True, source=cpu_programs)) as run:
        assert run.analyse("breakdown")["communication_not_overlapped_ns"].min() > 0
        assert saved(run, "synchronisation") == [0]
        assert run.analyse("joint_savings").filter(kind="synchronisation")["alone_ns"].to_list() == [0]


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(StepscopeError, match="no kind of time `waiting`"):
        saved(job(ranks=2), "waiting")


def test_a_single_rank_is_replayed_with_calls_as_long_as_they_were() -> None:
    alone = saved(job(ranks=1, gap_ns={0: 3 * MS}), "dispatch")

    assert alone[0] == pytest.approx(4 * 3 * MS, rel=0.05)  # before each of four kernels


def test_the_range_of_a_saving_holds_its_mean() -> None:
    assert quartiles([0.0, 0.0, 0.0, 0.0, 100.0]) == (0.0, 20.0)
    assert quartiles([100.0, 100.0, 100.0, 100.0, 0.0]) == (80.0, 100.0)
