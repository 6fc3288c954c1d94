"""Jobs of which less was recorded than usual, or something impossible: what is answered all the same, and what is not.

In all of them rank 3 of eight computes 1.3 times as long, which costs 1.13 ms in each of five steps.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from simulated.faults import Fault, kernels
from simulated.frames import run_of
from simulated.layouts import MS, Shape
from simulated.truth import Job
from stepscope.advice import advise
from stepscope.analysis import ANALYSES
from stepscope.errors import Unavailable
from stepscope.report.answers import answers
from stepscope.run import Run

SHAPE = Shape(ranks=8, steps=5, layers=2, layer_kernels=4)
SLOW = 3
Tables = dict[str, pl.DataFrame]
Change = Callable[[Tables], Tables]
LENGTHS = ("duration_ns", "self_ns", "wait_ns", "transmit_ns", "synchronization_ns")
HOST = ("slices", "operators", "synchronizations")
REPLAYED = ("replay", "what_if", "critical_path", "slack", "slow_ranks")


@cache
def base() -> tuple[Job, dict[int, Tables]]:
    job = Job("base", SHAPE, [Fault("computing", "rank", (SLOW,), kernels(1.3))])
    return job, {rank.rank: {name: rank.table(name).drop("rank", strict=False).collect() for name in rank.rows}
                 for rank in run_of(job).ranks}  # fmt: skip


def run_with(change: Change, *ranks: int) -> Run:
    """The job with the tables of some ranks, or of all, changed."""
    return Run.from_frames(
        {r: change(dict(t)) if r in (ranks or range(SHAPE.ranks)) else t for r, t in base()[1].items()}
    )


def without(*names: str) -> Change:
    return lambda tables: {name: frame for name, frame in tables.items() if name not in names}


def changed(name: str, *columns: pl.Expr, **named: pl.Expr) -> Change:
    return lambda tables: {**tables, name: tables[name].with_columns(*columns, **named)}


def at_times(frame: pl.DataFrame) -> list[str]:
    return [name for name in frame.columns if name.endswith("_ns") and name not in LENGTHS]


def shifted(ns: int) -> Change:
    return lambda tables: {name: frame.with_columns(pl.col(at_times(frame)) + ns) for name, frame in tables.items()}


def cut(tables: Tables, *, marks: bool) -> Tables:
    """What was recorded until the middle of the third step; its steps are marked to the end, or until then."""
    steps = tables["steps"]
    until = (steps["start_ns"][2] + steps["end_ns"][2]) // 2
    kept = {
        name: frame.filter(pl.col("start_ns") < until) if name not in ("steps", "ranks", "groups") else frame
        for name, frame in tables.items()
    }
    return kept if marks else {**kept, "steps": steps.head(3)}


def no_launches(tables: Tables) -> Tables:
    nothing = pl.lit(None, pl.Int64)
    return changed("kernels", launch_start_ns=nothing, launch_end_ns=nothing)(tables)


def told(run: Run) -> list[tuple[str, str, float]]:
    """Ranks, kind and cost in ms of those that are slow."""
    rows = run.analyse("slow_ranks").select("ranks", "kind", "cost_ns").rows()
    return [(ranks, kind, round(ns / MS, 2)) for ranks, kind, ns in rows]


NO_LENGTH = changed("kernels", duration_ns=pl.when(pl.col("kind") == "compute").then(0).otherwise("duration_ns"))

CASES: dict[str, tuple[Change, tuple[int, ...]]] = {
    "no operators of a rank": (without("operators"), (2,)),
    "no operators of the slow one": (without("operators"), (SLOW,)),
    "nothing of a rank's host": (without(*HOST), (2,)),
    "nothing of the slow one's host": (without(*HOST), (SLOW,)),
    "nothing of any host": (without(*HOST), ()),
    "no launches of a rank": (no_launches, (2,)),
    "no launches of the slow one": (no_launches, (SLOW,)),
    "no launches at all": (no_launches, ()),
    "no calls of a rank": (without("collectives"), (2,)),
    "no device work of a rank": (without("kernels", "collectives"), (2,)),
    "no computing of a rank": (lambda t: {**t, "kernels": t["kernels"].filter(pl.col("kind") != "compute")}, (2,)),
    "kernels of no length": (NO_LENGTH, (2,)),
    "launches after their kernels": (changed("kernels", launch_start_ns=pl.col("start_ns") + MS), (2,)),
    "launches in another order": (changed("kernels", pl.col("launch_start_ns", "launch_end_ns").reverse()), (2,)),
    "a stream of its own for each kernel": (changed("kernels", stream=pl.int_range(pl.len(), dtype=pl.Int64)), ()),
    "neither hosts nor sizes": (changed("ranks", host=pl.lit(None, pl.String), world_size=pl.lit(None, pl.Int32)), ()),
    "a rank cut in the middle": (lambda tables: cut(tables, marks=False), (2,)),
    "a rank cut, with marks of all steps": (lambda tables: cut(tables, marks=True), (2,)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_slow_rank_is_named_alone_and_with_its_cost_whatever_else_lacks(case: str) -> None:
    change, ranks = CASES[case]
    [(named, kind, cost_ms)] = told(run_with(change, *ranks))

    assert (named, kind) == (str(SLOW), "computing")
    assert cost_ms == pytest.approx(base()[0].mean_loss_ns / MS, rel=0.03)


def test_a_slow_rank_that_was_cut_is_named_for_the_steps_that_it_has() -> None:
    for marks in (False, True):
        run = run_with(lambda tables: cut(tables, marks=marks), SLOW)  # noqa: B023
        [row] = run.analyse("slow_ranks").to_dicts()

        assert (row["ranks"], row["kind"], row["slow_steps"]) == (str(SLOW), "computing", [3, 4])
        assert row["steps"] == row["counted_steps"] == 3
        # of the third step half was recorded; steps without the rank say nothing of what it costs
        assert 2 / 3 * 0.97 < row["cost_ns"] / base()[0].mean_loss_ns < 1


def test_steps_in_which_a_slow_rank_was_not_recorded_do_not_count_in_its_saving() -> None:
    until = base()[1][SLOW]["steps"]["end_ns"][1]
    kept = ("ranks", "groups")

    def first_two(tables: Tables) -> Tables:
        return {name: t if name in kept else t.filter(pl.col("start_ns") < until) for name, t in tables.items()}

    run = run_with(first_two, SLOW)
    [row] = run.analyse("slow_ranks").to_dicts()

    assert row["cost_ns"] == pytest.approx(base()[0].mean_loss_ns, rel=0.03)
    assert row["counted_steps"] == 2
    [found] = [one for one in advise(run, strict=True) if one.rule == "slow-rank"]
    assert found.parameters["recorded"] == 2


def test_a_host_of_which_nothing_was_recorded_is_compared_with_none() -> None:
    """Its waits for data look like launching late; those of the others are marked."""
    run = run_with(without(*HOST), 2)
    kinds = run.analyse("excess").filter(rank=2)["kind"].unique().to_list()

    assert sorted(kinds) == ["computing", "memory"]
    assert run.analyse("late_ranks").select("rank", "kind").rows() == [(SLOW, "computing")]
    everyone = run_with(without(*HOST)).analyse("excess")
    assert "dispatch" in everyone.filter(rank=2)["kind"].to_list()


@pytest.mark.parametrize("ranks", [(0, 1, 2, 3, 4, 6), (3, 7)])
def test_ranks_that_were_not_recorded_are_counted(ranks: tuple[int, ...]) -> None:
    tables = base()[1]
    [row] = Run.from_frames({rank: tables[rank] for rank in ranks}).analyse("slow_ranks").to_dicts()

    assert (row["ranks"], row["unrecorded_ranks"]) == (str(SLOW), SHAPE.ranks - len(ranks))


def test_a_slow_rank_that_was_not_recorded_is_blamed_on_nobody() -> None:
    tables = base()[1]
    assert told(Run.from_frames({rank: tables[rank] for rank in tables if rank != SLOW})) == []
    assert told(run_with(without("kernels"), SLOW)) == []


def test_a_single_step_shows_who_is_slow_in_it() -> None:
    job = Job("one", replace(SHAPE, steps=1), base()[0].faults)
    [row] = run_of(job).analyse("slow_ranks").to_dicts()

    assert (row["ranks"], row["steps"]) == (str(SLOW), 1)
    assert row["cost_ns"] == pytest.approx(job.mean_loss_ns, rel=0.03)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (changed("kernels", kind=pl.lit("memory")), "without compute kernels, so what it computed is unknown"),
        (lambda tables: {**tables, "kernels": tables["kernels"].clear(), "collectives": tables["collectives"].clear(),
                         "operators": tables["operators"].clear()}, "no work of the rank was recorded"),
    ],
)  # fmt: skip
def test_where_nothing_can_be_known_the_reason_is_given(change: Change, words: str) -> None:
    run = run_with(change)

    for question in REPLAYED:
        with pytest.raises(Unavailable, match=words):
            run.analyse(question)


def slower_clock(tables: Tables) -> Tables:
    """As if the clock of the rank's host ran much too fast."""
    first = tables["steps"]["start_ns"][0]
    return {name: frame.with_columns(pl.col(at_times(frame)) * 3 - 2 * first) for name, frame in tables.items()}


def test_where_clocks_disagree_by_more_than_any_call_explains_the_replay_says_so() -> None:
    run = run_with(slower_clock, 2)

    for question in REPLAYED[:-1]:
        with pytest.raises(Unavailable, match="clocks disagree by more than any call explains"):
            run.analyse(question)


@pytest.mark.parametrize("ns", [500 * MS, -3600_000 * MS])
def test_a_clock_of_its_own_within_a_host_changes_nothing(ns: int) -> None:
    """Several machines have the same name, e.g. `localhost`."""
    [(named, kind, cost_ms)] = told(run_with(shifted(ns), 2))

    assert (named, kind) == (str(SLOW), "computing")
    assert cost_ms == pytest.approx(base()[0].mean_loss_ns / MS, rel=0.03)


def test_without_calls_the_rank_that_is_busy_longest_holds_up_the_others() -> None:
    [(named, kind, cost_ms)] = told(run_with(without("collectives")))

    assert (named, kind) == (str(SLOW), "computing")
    assert cost_ms == pytest.approx(base()[0].mean_loss_ns / MS, rel=0.03)


IMPOSSIBLE: dict[str, Change] = {
    "negative lengths": changed("kernels", duration_ns=-pl.col("duration_ns")),
    "all at once": changed("kernels", start_ns=pl.col("start_ns").min()),
    "calls in another order": changed("collectives", start_ns=pl.col("start_ns").reverse()),
    "calls numbered backwards": changed("collectives", sequence=pl.col("sequence").reverse()),
    "no kernel in any step": changed("kernels", step=pl.lit(None, pl.Int32)),
    "nothing before the epoch": shifted(-1_700_000_000_000_000_000),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
@pytest.mark.parametrize("everyone", [False, True])
def test_what_is_impossible_breaks_no_answer_and_accuses_no_other_rank(case: str, everyone: bool) -> None:
    run = run_with(IMPOSSIBLE[case], *(() if everyone else (2,)))

    for question in ANALYSES:
        try:
            run.analyse(question)
        except Unavailable as reason:
            assert str(reason)
    assert {named for named, _, _ in told(run)} <= {str(SLOW)}
    answers(run)
