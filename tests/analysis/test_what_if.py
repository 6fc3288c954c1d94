"""How long steps would take with other durations, what decides that, and what cannot be asked: figures by hand.

In a step of `job` without jitter, each rank loads data for 1 ms, launches within 2 us, and four times computes for 5 ms
and sums for 2 ms: 29.002 ms.
"""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.errors import StepscopeError, Unavailable
from stepscope.run import Run
from stepscope.tables import GROUPS, OPERATORS
from tests.analysis.jobs import MS, job

STEP = 29_002_000
SLOW = {"ranks": 4, "steps": 2, "compute": {1: 1.3, 2: 1.1}, "jitter": 0.0}
"""Rank 1 computes 6 ms longer, rank 2 takes 2 ms longer: a step takes 35.002 ms."""


def saved(run: Run, **changes: object) -> list[int]:
    found = run.analyse("what_if", **changes)
    assert (found["replayed_ns"] - found["changed_ns"]).equals(found["saving_ns"].alias("replayed_ns"))
    return found["saving_ns"].to_list()


@pytest.fixture(scope="module")
def slow() -> Run:
    return job(**SLOW)


def test_nothing_changed_saves_nothing_and_the_replay_is_the_recording(slow: Run) -> None:
    found = slow.analyse("what_if")

    row = {"recorded_ns": 35_002_000, "replayed_ns": 35_002_000, "changed_ns": 35_002_000}
    none = {"saving_ns": 0, "saving_ratio": 0.0, "less_ns": 0, "unmatched_ns": 0, "error_ratio": 0.0}
    assert found.to_dicts() == [{"step": step, **row, **none} for step in (1, 2)]


def test_the_excess_of_all_of_some_and_of_ranks_that_wait(slow: Run) -> None:
    assert saved(slow, ideal=True) == [6 * MS] * 2
    assert saved(slow, without="rank=1") == [4 * MS] * 2  # then rank 2 is the last
    assert saved(slow, without="rank=2") == [0, 0]
    assert saved(slow, without="rank=1; rank=2") == [6 * MS] * 2
    assert saved(slow, without="rank=1,kind=dispatch") == [0, 0]
    assert saved(slow, without="rank=1,step=2") == [0, 4 * MS]
    assert saved(slow, without="host=host") == [6 * MS] * 2
    found = slow.analyse("replay")
    assert found["ideal_ns"].to_list() == [STEP, STEP]
    assert found["saving_ns"].to_list() == [6 * MS, 6 * MS]


def test_work_that_takes_another_time(slow: Run) -> None:
    assert saved(slow, scale="kind=computing,0.5") == [13 * MS] * 2
    assert saved(slow, scale="kind=computing,0") == [26 * MS - 2000] * 2  # the launches stay
    assert saved(slow, scale="op=GEMM,50%") == [13 * MS] * 2
    assert saved(slow, scale="rank=1,op=gemm,0.5") == [4 * MS] * 2
    assert saved(slow, scale="rank=3,kind=computing,2x") == [-14 * MS] * 2  # 40 ms, 14 more than rank 1 needs
    assert saved(slow, scale="rank=3,kind=computing,1.3") == [0, 0]
    assert saved(slow, scale="step=1,kind=data_loading,3") == [-2 * MS, 0]
    assert saved(slow, scale="kind=computing,0.5;op=gemm,0.5") == [round(19.5 * MS)] * 2


def test_communication_over_a_faster_network(slow: Run) -> None:
    assert saved(slow, bandwidth="2x") == [4 * MS] * 2
    assert saved(slow, bandwidth="0.5") == [-8 * MS] * 2
    assert saved(slow, scale="op=all_reduce,0.5") == [4 * MS] * 2


def test_changes_are_made_together(slow: Run) -> None:
    assert saved(slow, without="rank=1", bandwidth="2x", scale="kind=data_loading,0.5") == [round(8.5 * MS)] * 2
    assert saved(slow, ideal=True, scale="kind=computing,0.5") == [16 * MS] * 2


def with_tables(run: Run, **tables: pl.DataFrame) -> Run:
    frames = {
        rank.rank: {name: rank.table(name).drop("rank", strict=False).collect() for name in rank.rows} | tables
        for rank in run.ranks
    }
    return Run.from_frames(frames)


def test_a_group_is_named_by_its_key_or_name() -> None:
    groups = GROUPS.conform(pl.DataFrame({"group": ["dp"], "name": ["DATA"], "members": [[0, 1]]}))
    run = with_tables(job(ranks=2, steps=1, jitter=0.0, compute={1: 1.3}), groups=groups)

    assert saved(run, without="group=dp") == saved(run, without="group=DATA") == [6 * MS]


def test_an_operator_is_the_kernels_that_it_launched() -> None:
    base = job(ranks=2, steps=1, jitter=0.0)
    launches = base.ranks[0].table("kernels").collect()["launch_start_ns"]
    spans = {"start_ns": [launches[0], launches[2]], "duration_ns": [10, 10], "name": ["aten::mm", "flash"]}
    operators = OPERATORS.conform(pl.DataFrame({**spans, "step": [1, 1]}).with_row_index("slice"))
    run = with_tables(base, operators=operators)

    assert saved(run, scale="op=flash,0.2") == [4 * MS]
    assert saved(run, scale="op=gemm,0.2") == [16 * MS]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"without": "rank=9"}, "--without rank=9: there is no rank 9. There are ranks 0-3"),
        ({"without": "rank=one"}, "'one' is not a number"),
        ({"without": "lane=1"}, "`lane=1` is not understood. Give one or several of rank=..., host=..., group="),
        ({"without": "rank="}, "`rank=` is not understood"),
        ({"without": "rank=1,host=elsewhere"}, "there is no host `elsewhere`. There is host"),
        ({"scale": "op=gemm"}, "give which work and a factor"),
        ({"scale": "op=gemm,-1"}, "op=FlashAttention,0.7; the factor must be 0 or more, up to a million"),
        ({"scale": "op=gemm,nan"}, "0 or more"),
        ({"scale": "op=gemm,inf"}, "up to a million"),
        ({"scale": "op=gemm,0.5;op=gemm,0.5"}, "the same work has a factor already"),
        ({"scale": "op=gmm,0.5"}, r"Did you mean gemm\? There are gemm, all_reduce"),
        ({"scale": "kind=compting,0.5"}, r"Did you mean computing\? There are communication, computing"),
        (
            {"ideal": True, "without": "rank=1"},
            "--ideal takes away the excess of all ranks already, so --without rank=1",
        ),
        ({"scale": "op=attention,0.5"}, "no kernel, call or operator has this in its name"),
        ({"scale": "0.5"}, "give which work and a factor"),
        ({"bandwidth": "fast"}, "give a factor, e.g. 2x"),
        ({"bandwidth": "0x"}, "above 0"),
    ],
)
def test_what_is_not_understood_is_said(slow: Run, changes: dict[str, str], words: str) -> None:
    with pytest.raises(StepscopeError, match=words):
        slow.analyse("what_if", **changes)


def test_of_one_rank_no_excess_is_known_but_work_may_be_scaled() -> None:
    run = job(ranks=1, steps=2, jitter=0.0)

    assert saved(run, scale="kind=computing,0.5") == [10 * MS] * 2
    for change in ({"without": "rank=0"}, {"ideal": True}):
        with pytest.raises(Unavailable, match="no other rank to compare with"):
            run.analyse("what_if", **change)


def test_the_critical_path_is_the_slow_rank_and_sums_to_the_step(slow: Run) -> None:
    path = slow.analyse("critical_path").filter(step=1)

    facts = path.select("rank", "kind", "pieces", "start_ns", "duration_ns", "gap_ns", "why").rows()
    assert facts[:5] == [
        (1, "data_loading", 1, 0, 1_000_000, 0, None),
        (1, "dispatch", 1, 1_000_000, 1_000, 0, "lane"),
        (1, "computing", 1, 1_002_000, 6_500_000, 1_000, "launch"),
        (1, "communication", 1, 7_502_000, 2_000_000, 0, "call"),
        (1, "computing", 1, 9_502_000, 6_500_000, 0, "time"),
    ]
    assert path["duration_ns"].sum() + path["gap_ns"].sum() == 35_002_000


def test_who_has_time_to_spare(slow: Run) -> None:
    found = slow.analyse("slack").filter(step=1)

    assert found["rank"].to_list() == [0, 1, 2, 3]
    assert found["slack_ns"].to_list() == [round(1.5 * MS), 0, MS, round(1.5 * MS)]  # in one of four calls
    assert found["path_ns"].to_list() == [0, 35_002_000, 0, 0]
    assert found["path_ratio"][1] == 1
