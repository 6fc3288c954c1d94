"""Which ranks run the same program, and are compared."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.methods.programs import Limits, programs
from stepscope.errors import Unavailable
from stepscope.run import Run
from tests.analysis.jobs import MS, job

LAYER = {"gemm": 10, "softmax": 5, "all_reduce": 4}


def sorted_into(*does: dict[str, int], limits: Limits | None = None) -> list[int]:
    """The program of each rank."""
    rows = [(rank, what, count) for rank, counts in enumerate(does) for what, count in counts.items()]
    counts = pl.DataFrame(rows, schema={"rank": pl.Int32, "what": pl.String, "count": pl.Int64}, orient="row")
    found = programs(counts) if limits is None else programs(counts, limits)
    assert found["rank"].to_list() == list(range(len(does)))
    return found["program"].to_list()


def test_ranks_that_do_the_same_run_one_program() -> None:
    assert sorted_into(LAYER, LAYER, LAYER) == [0, 0, 0]


def test_one_more_kernel_is_the_same_program_and_another_stage_is_not() -> None:
    assert sorted_into(LAYER, {**LAYER, "loss": 1}) == [0, 0]
    assert sorted_into(LAYER, {**LAYER, "embedding": 5, "send": 2}, LAYER) == [0, 1, 0]


def test_at_the_limit_ranks_are_alike() -> None:
    assert sorted_into({"gemm": 9}, {"gemm": 10}) == [0, 0]
    assert sorted_into({"gemm": 89}, {"gemm": 100}) == [0, 1]
    assert sorted_into({"gemm": 79}, {"gemm": 100}, limits=Limits(alike_ratio=0.7)) == [0, 0]


def test_what_several_ranks_do_alike_and_others_do_not_is_another_program() -> None:
    longer = {**LAYER, "loss": 1}
    assert sorted_into(LAYER, LAYER, longer, longer) == [0, 0, 2, 2]
    assert sorted_into(LAYER, LAYER, LAYER, longer) == [0, 0, 0, 0]
    # Alike to both, a rank is with those that are nearest, and does not bring them together.
    near = {**LAYER, "softmax": 6}
    assert sorted_into(LAYER, LAYER, near, {**near, "loss": 1}, {**near, "loss": 1}) == [0, 0, 2, 2, 2]


def test_programs_are_connected_over_others() -> None:
    assert sorted_into({"gemm": 100}, {"gemm": 75}, {"gemm": 90}, {"gemm": 82}) == [0, 0, 0, 0]


def test_the_first_stage_first_and_each_named_by_its_lowest_rank() -> None:
    last = {"gemm": 10, "loss": 9}
    assert sorted_into(last, LAYER, last, LAYER) == [0, 1, 0, 1]


def test_nothing_done_is_no_program() -> None:
    assert sorted_into() == []


def test_own_times_are_those_of_each_ranks_work_without_calls() -> None:
    found = job(ranks=2, steps=1, compute={1: 1.5}, gap_ns={0: MS}, jitter=0.0).analyse("own_times")

    assert found.select("rank", "kind", "own_ns", "pieces", "program").rows() == [
        (0, "computing", 20 * MS, 4, 0),
        (0, "data_loading", MS, 1, 0),
        (0, "dispatch", 3_998_000, 4, 0),  # 1 us of launching before the first gap, 1 us less in the others
        (1, "computing", 30 * MS, 4, 0),
        (1, "data_loading", MS, 1, 0),
        (1, "dispatch", 4000, 4, 0),
    ]


def test_ranks_of_other_programs_are_not_compared() -> None:
    """Ranks 2 and 3 compute other kernels, twice as long: another stage, and nobody is slow."""
    base = job(ranks=4, compute={2: 2.0, 3: 2.0})
    frames = {}
    for rank in base.ranks:
        tables = {name: rank.table(name).drop("rank", strict=False).collect() for name in rank.rows}
        if rank.rank >= 2:
            tables["kernels"] = tables["kernels"].with_columns(name=pl.lit("attention"))
        frames[rank.rank] = tables
    run = Run.from_frames(frames)

    excess = run.analyse("excess")
    assert excess.select("rank", "program").unique(maintain_order=True).rows() == [(0, 0), (1, 0), (2, 2), (3, 2)]
    assert run.analyse("slow_ranks").is_empty()
    assert base.analyse("slow_ranks")["ranks"].to_list() == ["2, 3"]


def test_a_single_rank_is_compared_with_nobody() -> None:
    with pytest.raises(Unavailable, match="at least two ranks"):
        job(ranks=1).analyse("own_times")
