"""Losses that strike all ranks, so that there is nobody to compare with: what is said, and of whom nothing."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from simulated.faults import Fault, kernels
from simulated.frames import run_of
from simulated.layouts import Shape
from simulated.on_cpu import cpu_programs
from simulated.recording import recorded
from simulated.truth import STEP_NUMBER, Job
from stepscope.advice import advise, worded
from stepscope.run import Run
from stepscope.tables import TABLES

DATA = Shape(ranks=8, steps=12, layers=2)
SOME = frozenset({5, 6, 9})


def struck(shape: Shape, ranks: range, factor: float, steps: frozenset[int] | None = None, match: str = "") -> Job:
    return Job("all", shape, [Fault("computing", "job", tuple(ranks), kernels(factor, match), steps=steps)])


@pytest.mark.parametrize(("factor", "match"), [(1.5, ""), (1.3, ""), (2.0, "flash")])
def test_steps_in_which_all_ranks_are_slower_are_told_with_what_they_cost(factor, match) -> None:
    job = struck(DATA, range(8), factor, SOME, match)
    run = run_of(job)
    [row] = run.analyse("slowed_steps").to_dicts()

    assert row["kind"] == "computing" and row["slow_steps"] == sorted(step + STEP_NUMBER for step in SOME)
    assert row["cost_ns"] == pytest.approx(job.mean_loss_ns, rel=0.02)
    assert (row["factor"] == pytest.approx(factor, rel=0.02)) == (not match)
    assert [name.startswith("void flash") for name in row["names"]] == ([True, True] if match else [])
    [finding] = [one for one in advise(run) if one.saving_ns]
    assert (finding.rule, finding.ranks, finding.saving_ns) == ("slowed-steps", [], row["cost_ns"])
    assert "steps 8-9,12" in worded(finding).summary


@pytest.mark.parametrize("steps", [5, 6])
def test_few_steps_show_one_that_is_much_slower_for_all_and_no_noise(steps) -> None:
    few = replace(DATA, steps=steps)
    [row] = run_of(struck(few, range(8), 1.5, frozenset({3}))).analyse("slowed_steps").to_dicts()

    assert (row["slow_steps"], row["steps"]) == ([3 + STEP_NUMBER], steps - 1)
    assert run_of(struck(replace(few, work_noise=0.1), range(0), 1.0)).analyse("slowed_steps").is_empty()


ON_CPU = Shape(ranks=4, steps=8, kernel_ns=500_000, layers=2)


@pytest.mark.parametrize(("ranks", "steps", "found"), [(4, {4, 5, 6}, [[7, 8, 9]]), (4, {4}, []), (1, {4, 5}, [])])
def test_slow_steps_of_all_hosts_without_devices_are_told_unless_it_is_one(ranks, steps, found) -> None:
    slow = Fault("computing", "job", tuple(range(ranks)), kernels(1.8), steps=frozenset(steps))
    job = Job("hosts", ON_CPU, [slow], on_cpu=True, source=cpu_programs)

    with recorded(job) as run:
        rows = run.analyse("slowed_steps")

    assert rows["slow_steps"].to_list() == found
    if found:
        assert rows["cost_ns"].item() == pytest.approx(job.mean_loss_ns, rel=0.05)


@pytest.mark.parametrize(("waited_ratio", "found"), [(0.05, [[7, 8, 9]]), (0.3, [])])
def test_steps_whose_threads_wait_for_processors_are_slow_for_that_reason(waited_ratio, found) -> None:
    slow = Fault("computing", "job", (0, 1, 2, 3), kernels(1.8), steps=frozenset({4, 5, 6}))
    with recorded(Job("hosts", ON_CPU, [slow], on_cpu=True, source=cpu_programs)) as run:
        frames = {
            rank.rank: {
                name: rank.table(name).drop("rank", strict=False).collect() for name in TABLES if rank.has(name)
            }
            for rank in run.ranks
        }
    of_one, length = frames[0]["steps"], pl.col("end_ns") - pl.col("start_ns")
    waits = pl.when(pl.col("step").is_in([7, 8, 9])).then(waited_ratio * length).otherwise(0).cast(pl.Int64)
    frames[0]["steps"] = of_one.with_columns(run_delay_ns=waits)

    assert Run.from_frames(frames).analyse("slowed_steps")["slow_steps"].to_list() == found


def test_uneven_batches_and_a_single_slow_rank_are_no_slow_steps_of_all() -> None:
    for shape, ranks in ((replace(DATA, work_noise=0.1, steps=20), range(0)), (DATA, range(3, 4))):
        assert run_of(struck(shape, ranks, 1.5, SOME)).analyse("slowed_steps").is_empty()


def test_steps_with_more_work_are_not_slow() -> None:
    """In some steps, each rank runs its kernels twice: as in steps with gradient accumulation."""

    def source(shape: Shape):
        found = Job("more", shape).source(shape)
        for steps in found.values():
            for step in SOME:
                steps[step] = [*steps[step][:-3], *steps[step]]
        return found

    shape = replace(DATA, ranks=2, synchronises=False)
    assert run_of(Job("more", shape, source=source)).analyse("slowed_steps").is_empty()


def test_one_fast_rank_accuses_nobody() -> None:
    job = struck(DATA, range(7), 1.3)
    run = run_of(job)
    [row] = run.analyse("fast_ranks").to_dicts()

    assert (row["ranks"], row["others"]) == ("7", 7)
    assert row["others_ns"] == pytest.approx(1.3 * row["own_ns"], rel=0.02)
    assert row["if_alike_ns"] == pytest.approx(job.mean_loss_ns, rel=0.02)
    [finding] = advise(run)
    assert (finding.rule, finding.saving_ns, finding.saving_low_ns) == ("fast-rank", 0, 0)
    assert finding.saving_high_ns == row["if_alike_ns"] and finding.severity == "medium"


def test_where_most_ranks_are_slow_they_are_compared_with_the_rest_which_may_be_the_unusual_ones() -> None:
    [finding] = [one for one in advise(run_of(struck(DATA, range(6), 1.3))) if one.rule == "slow-rank"]
    told = worded(finding)

    assert told.summary.startswith("Ranks 0-5 compute slowly: ") and "more per step than ranks 6-7" in told.summary
    assert "it may be ranks 6-7 that differ" in told.cause and "median rank" not in told.cause


def test_asking_about_one_job_leaves_the_answers_about_another_as_they_are() -> None:
    jobs = [struck(DATA, range(8), 1.5, SOME), struck(DATA, range(3, 4), 1.5)]
    alone = [[(one.rule, one.saving_ns) for one in advise(run_of(job))] for job in jobs]

    runs = [run_of(job) for job in jobs]
    for run, found in zip([*runs, *runs], [*alone, *alone], strict=True):
        assert [(one.rule, one.saving_ns) for one in advise(run)] == found
    assert alone[0] != alone[1]


def test_a_healthy_job_has_no_fast_rank_and_no_slow_steps() -> None:
    run = run_of(Job("healthy", DATA))
    assert run.analyse("fast_ranks").is_empty() and run.analyse("slowed_steps").is_empty()
