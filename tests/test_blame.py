"""Who is blamed for what, when, and with which cost: jobs of the benchmark, whose truth is a simulation without the
fault."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from simulated.faults import Fault, kernels, launches, stops, waits_for_data
from simulated.frames import run_of
from simulated.layouts import MS, US, Shape, programs_of
from simulated.truth import Job
from stepscope.advice import advise, limits_from, worded
from stepscope.advice.finding import Finding
from stepscope.run import Run

DATA = Shape(ranks=8, steps=6, layers=2, layer_kernels=4)
HOSTS = replace(DATA, ranks=32, steps=5, clock_spread_ns=3 * MS)
TENSOR = replace(DATA, ranks=16, tensor=4)
STAGES = replace(DATA, stages=4, layers=1, micro_batches=6)
HOST_BOUND = replace(DATA, kernel_ns=12 * US, gap_ns=28 * US, layers=8, layer_bytes=2_000_000)
FIRST = 3
"""Number of the first step."""


def computing(ranks: list[int], factor: float, steps: range | None = None) -> Fault:
    only = None if steps is None else frozenset(steps)
    return Fault("computing", "some", tuple(ranks), kernels(factor), steps=only)


def told(run: Run) -> list[dict[str, object]]:
    return run.analyse("slow_ranks").to_dicts()


def is_close(claimed_ns: object, true_ns: float) -> bool:
    return claimed_ns == pytest.approx(true_ns, rel=0.02)


@pytest.mark.parametrize(
    ("shape", "ranks", "factor", "unit", "alone_ratio"),
    [
        (TENSOR, TENSOR.tensor_ranks(5), 1.3, ("tensor-parallel group", "4-7"), 0.15),
        (HOSTS, HOSTS.host_ranks(1), 1.2, ("host", "host1"), 0.1),
        (STAGES, STAGES.stage_ranks(1), 1.3, ("pipeline stage", "1"), 0.07),
        (replace(DATA, ranks=4), [0, 1, 3], 1.3, ("ranks", "0, 1, 3"), 0.18),
        (DATA, [5], 1.1, ("rank", "5"), 0.07),
    ],
    ids=["a tensor-parallel group", "a node", "a pipeline stage", "3 of 4 ranks", "a rank by a tenth"],
)
def test_ranks_that_are_slow_together_are_one_unit_with_one_cost(shape, ranks, factor, unit, alone_ratio) -> None:
    job = Job("unit", shape, [computing(ranks, factor)])
    [row] = told(run_of(job))

    assert (row["unit_kind"], row["unit"]) == unit
    assert (row["ranks"], row["kind"], row["pattern"]) == (", ".join(map(str, ranks)), "computing", "steady")
    assert is_close(row["cost_ns"], job.mean_loss_ns)
    assert row["cost_ratio"] > alone_ratio
    assert row["saving_low_ns"] <= row["cost_ns"] <= row["saving_high_ns"]
    assert row["excess_ns"] == pytest.approx((factor - 1) * row["typical_ns"], rel=0.05)


def test_many_ranks_that_are_slow_alike_cost_what_they_do_together_also_if_no_unit_is_known() -> None:
    """The ranks of a host whose name was not recorded: an eighth of the cost would be next to nothing."""
    job = Job("unknown", HOSTS, [computing(HOSTS.host_ranks(2), 1.15)])
    run = run_of(job)
    tables = {r.rank: {n: r.table(n).drop("rank", strict=False).collect() for n in r.rows} for r in run.ranks}
    for frames in tables.values():
        frames["ranks"] = frames["ranks"].with_columns(host=pl.lit(None, pl.String))
    [row] = told(Run.from_frames(tables))

    assert (row["unit_kind"], row["ranks"]) == ("ranks", ", ".join(map(str, range(16, 24))))
    assert is_close(row["cost_ns"], job.mean_loss_ns)


@pytest.mark.parametrize("layers", [(4, 5), (5, 4)])
def test_pipeline_stages_of_unequal_size_accuse_nobody(layers: tuple[int, int]) -> None:
    shape = replace(DATA, stages=2, layers=1, micro_batches=6)

    stages = [programs_of(replace(shape, layers=count)) for count in layers]
    programs = {rank: stages[shape.place(rank)[0]][rank] for rank in range(shape.ranks)}

    assert told(run_of(Job("unequal stages", shape, [], source=lambda _: programs))) == []


def test_ranks_that_are_slow_by_growing_factors_are_told_together() -> None:
    """Of each of them, the next slower one leaves too little to save."""
    slow = range(1, 30, 3)
    job = Job("growing", replace(HOSTS, seed=4), [computing([rank], 1.1 + 0.01 * rank / 3) for rank in slow])
    rows = told(run_of(job))

    assert is_close(sum(row["cost_ns"] for row in rows), job.mean_loss_ns)
    assert {rank for row in rows for rank in row["ranks"].split(", ")} == {str(rank) for rank in slow}


@pytest.mark.parametrize(
    ("steps", "slow", "pattern", "period"),
    [
        (10, range(6, 10), "since", None),
        (12, range(2, 12, 3), "periodic", 3),
        (20, range(6), "until", None),
    ],
)
def test_a_rank_that_is_slow_in_some_steps_is_named_with_these(steps, slow, pattern, period) -> None:
    job = Job("some steps", replace(DATA, steps=steps), [computing([3], 1.4, slow)])
    [row] = told(run_of(job))

    assert (row["ranks"], row["kind"], row["pattern"], row["period"]) == ("3", "computing", pattern, period)
    assert row["slow_steps"] == [step + FIRST for step in slow]
    assert (row["steps"], row["steps_late"]) == (steps, len(slow))
    assert is_close(row["cost_ns"], job.mean_loss_ns)


def test_another_rank_each_step_is_one_row_about_the_job_and_names_no_rank_alone() -> None:
    """A random rank takes 1.6 times as long in each of 16 steps: 60 % of the 3.5 ms that a step computes."""
    fault = Fault("computing", "rotating", tuple(range(8)), kernels(1.6), rotates=True)
    job = Job("rotating", replace(DATA, steps=16), [fault])
    run = run_of(job)
    [row] = told(run)

    assert (row["unit_kind"], row["unit"], row["pattern"]) == ("job", None, "rotating")
    assert set(map(int, row["ranks"].split(", "))) == {r for r in range(8) for s in range(16) if fault.strikes(r, s)}
    assert is_close(row["cost_ns"], job.mean_loss_ns)
    assert row["excess_ns"] == pytest.approx(0.6 * row["typical_ns"], rel=0.05)
    [finding] = [each for each in advise(run, strict=True) if each.severity == "high"]
    assert (finding.rule, finding.message, finding.where) == ("slow-rank", "rotating", {})


def test_two_slow_ranks_in_different_groups_share_what_both_cost() -> None:
    """The later one hides part of the other: mending one saves less than its share, and both together the sum."""
    faults = [computing([1], 1.3), computing([6], 1.25)]
    job = Job("two", TENSOR, faults)
    rows = told(run_of(job))

    assert [row["ranks"] for row in rows] == ["1", "6"]
    assert is_close(sum(row["cost_ns"] for row in rows), job.mean_loss_ns)
    assert is_close(rows[0]["alone_ns"], job.loss_without(faults[0]))
    assert rows[1]["alone_ns"] <= job.loss_without(faults[1]) + 0.01 * job.mean_loss_ns
    assert all(row["alone_ns"] <= row["cost_ns"] for row in rows)


def test_a_host_bound_rank_costs_what_the_job_waits_for_it() -> None:
    job = Job("dispatch", HOST_BOUND, [Fault("dispatch", "rank", (3,), launches(20 * US))])
    [row] = told(run_of(job))

    assert (row["ranks"], row["kind"]) == ("3", "dispatch")
    assert is_close(row["cost_ns"], job.mean_loss_ns)


def test_of_two_ranks_the_one_that_waits_for_its_loader_is_named_once() -> None:
    job = Job("loader", replace(DATA, ranks=2), [Fault("data_loading", "rank", (1,), waits_for_data(34 * MS))])
    run = run_of(job)
    [row] = told(run)

    assert (row["ranks"], row["kind"]) == ("1", "data_loading")
    assert is_close(row["cost_ns"], job.mean_loss_ns)
    assert claims(run) == [("slow-rank", "high")]


def claims(run: Run) -> list[tuple[str, str]]:
    """Rules and severities of the findings that are worth a look."""
    return [(each.rule, each.severity) for each in _findings(run) if each.severity != "low"]


def _findings(run: Run) -> list[Finding]:
    return list(advise(run, strict=True))


def test_waiting_that_the_bubble_of_a_pipeline_hides_is_not_claimed() -> None:
    """The host of a rank of the last stage stops for 3.9 ms; its first input comes nearly as late."""
    job = Job("bubble", STAGES, [Fault("dispatch", "rank", (6,), stops(STAGES.kernel_ns * 26, place=0.02))])
    run = run_of(job)
    found = run.analyse("what_if", without="rank=6")

    assert job.mean_loss_ns < 0.015 * job.times.total_ns / STAGES.steps
    assert found["saving_ns"].mean() == pytest.approx(job.mean_loss_ns, rel=0.1)
    assert run.analyse("late_ranks").select("rank", "kind").rows() == [(6, "dispatch")]
    assert told(run) == []
    assert claims(run) == [("pipeline-bubble", "medium")]


@pytest.mark.parametrize(("steps", "late", "factor"), [(4, [2], 2.0), (4, [1, 3], 1.5), (2, [1], 4.0), (8, [4], 2.0)])
def test_a_rank_that_is_slow_in_one_or_two_steps_is_named_with_them(steps, late, factor) -> None:
    fault = Fault("computing", "rank", (5,), kernels(factor), steps=frozenset(late))
    job = Job("few steps", replace(DATA, steps=steps), [fault])
    run = run_of(job)
    [row] = told(run)

    assert (row["ranks"], row["kind"]) == ("5", "computing")
    assert row["slow_steps"] == [step + FIRST for step in late]
    assert is_close(row["cost_ns"], job.mean_loss_ns)
    assert 0 < row["saving_low_ns"] <= row["cost_ns"] <= row["saving_high_ns"]
    finding = _findings(run)[0]
    assert finding.severity == ("medium" if steps == 2 else "high")
    assert worded(finding).summary.startswith(
        f"Rank 5 computes slowly in step{'s' if late[1:] else ''} {late[0] + FIRST}"
    )
    assert finding.parameters["factor"] == pytest.approx(factor, rel=0.01)
    assert ("Only 2 steps could be compared" in worded(finding).cause) == (steps == 2)


def test_a_collection_in_one_step_is_claimed_once() -> None:
    collection = Fault("gc", "rank", (5,), stops(10 * MS, "python_gc", "gc"), steps=frozenset({2}))
    job = Job("collection", replace(DATA, steps=4), [collection])
    found = [one for one in _findings(run_of(job)) if one.saving_ns]

    assert [(one.rule, one.message) for one in found] == [("slow-rank", "garbage_collection/garbage_collection")]
    assert found[0].where == {"rank": 5, "steps": [5]}
    assert is_close(found[0].saving_ns, job.mean_loss_ns)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("dispatch", "rank", (5,), stops(10 * MS), steps=frozenset({2})),
        Fault("dispatch", "rank", (5,), stops(60 * MS), steps=frozenset({2})),
        Fault("computing", "rank", (5,), kernels(2.0), steps=frozenset({0})),
    ],
    ids=["a stall", "a long stall", "the first step"],
)
def test_what_may_strike_any_rank_once_accuses_nobody(fault) -> None:
    assert told(run_of(Job("once", replace(DATA, steps=4), [fault]))) == []


def test_in_each_of_three_steps_another_rank() -> None:
    faults = [replace(computing([rank], 1.6), steps=frozenset({step})) for step, rank in enumerate((3, 6, 1))]
    job = Job("another", replace(DATA, steps=3), faults)
    [row] = told(run_of(job))

    assert (row["pattern"], row["ranks"]) == ("rotating", "1, 3, 6")
    assert is_close(row["cost_ns"], job.mean_loss_ns)


def test_collections_of_all_ranks_in_steps_of_their_own_are_one_finding() -> None:
    collects = stops(10 * MS, "python_gc", "gc")
    faults = [Fault("gc", "rank", (rank,), collects, steps=frozenset({rank * 3 % 7 + 1})) for rank in range(8)]
    job = Job("collections", replace(DATA, steps=8), faults)
    [row] = told(run_of(job))

    assert (row["kind"], row["pattern"], row["steps_late"]) == ("garbage_collection", "sometimes", 7)
    assert row["ranks"] == "0, 1, 2, 3, 4, 5, 6, 7"
    assert is_close(row["cost_ns"], job.mean_loss_ns)


def test_a_loader_that_is_late_once_is_a_long_step_and_no_slow_rank() -> None:
    late = Fault("data_loading", "rank", (5,), waits_for_data(10 * MS), steps=frozenset({2}))
    job = Job("loader", replace(DATA, steps=4), [late])
    run = run_of(job)

    assert told(run) == []
    found = _findings(run)[0]
    assert (found.rule, found.message, found.ranks) == ("long-step", "data_loading", [5])
    assert found.parameters["steps"] == [1 + FIRST]  # a window ends with the next step's first kernel
    assert is_close(found.saving_ns, job.mean_loss_ns)
    assert found.saving_low_ns > 0


@pytest.mark.parametrize(("change", "found"), [(stops(5 * MS), []), (launches(20 * US), [("5", "dispatch")])])
def test_of_two_steps_stalls_in_both_are_chance_and_slow_launches_are_not(change, found) -> None:
    job = Job("two steps", replace(HOST_BOUND, steps=2), [Fault("dispatch", "rank", (5,), change)])

    assert [(row["ranks"], row["kind"]) for row in told(run_of(job))] == found


@pytest.mark.parametrize("everyone", [False, True])
def test_one_very_long_step_is_what_the_advice_begins_with(everyone: bool) -> None:
    ranks = tuple(range(8)) if everyone else (3,)
    fault = Fault("outlier", "job" if everyone else "rank", ranks, stops(4_600 * MS), steps=frozenset({6}))
    job = Job("outlier", replace(DATA, steps=10), [fault])
    run = run_of(job)

    found = _findings(run)[0]
    assert found.severity == "high"
    assert is_close(found.saving_ns, job.mean_loss_ns)
    assert found.rule in ("long-step", "host-stall") and found.where["steps"] == [6 + FIRST]
    assert found.ranks == [3] or (everyone and found.ranks in ([], list(ranks)))
    assert told(run) == []  # one step shows no slow rank


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "changes",
    [
        {"stall_ns": 5 * MS, "stalls": 0.15, "steps": 10},
        {"clock_spread_ns": 5 * MS, "ranks_per_host": 4},
        {"work_noise": 0.03},
        {"layer_bytes": 200_000_000},
    ],
    ids=["random stalls of 5 ms", "clocks of hosts differ", "uneven batches", "slow network for all"],
)
def test_healthy_jobs_accuse_nobody(changes: dict[str, object], seed: int) -> None:
    run = run_of(Job("healthy", replace(DATA, seed=seed, **changes)))

    assert told(run) == []
    assert [each for each in claims(run) if each[1] == "high"] == []


@pytest.mark.parametrize("steady", [False, True])
def test_a_random_skew_of_20_us_is_no_slow_rank(steady: bool) -> None:
    run = run_of(Job("skew", replace(HOST_BOUND, skew_ns=20 * US, steady_skew=steady)))

    assert told(run) == []
    assert not {"slow-rank", "slow-link", "slow-group"} & {each.rule for each in _findings(run)}


def test_what_costs_less_than_the_limit_is_not_told() -> None:
    """A tenth more computing costs 8 % of the step."""
    run = run_of(Job("little", DATA, [computing([2], 1.1)]))

    assert [row["ranks"] for row in told(run)] == ["2"]
    assert told(run.with_limits(limits_from({"suspect_costs": {"cost_ratio": 0.09}}))) == []
