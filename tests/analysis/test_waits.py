"""Who waited for whom, along chains of groups."""

from __future__ import annotations

from itertools import product

import polars as pl
import pytest

from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import COLLECTIVES, GROUPS, KERNELS, STEPS
from tests.analysis.jobs import MS, job

LATE = 12 * MS


def two_by_two(late: dict[int, int], steps: int = 3, layers: int = 1, *, goes_on: bool = False) -> Run:
    """Ranks 0 and 1 are `tp_0`, 2 and 3 `tp_1`; then 0 and 2 are `dp_0`, 1 and 3 `dp_1`.

    Args:
        late: By how much longer ranks compute in each layer.
        steps: How many.
        layers: Number of times in a step that they compute, and call both groups.
        goes_on: They do not wait for the end of the calls of `dp`, except in the last layer.
    """
    members = {"tp_0": [0, 1], "tp_1": [2, 3], "dp_0": [0, 2], "dp_1": [1, 3]}
    now = dict.fromkeys(range(4), 0)
    calls: dict[int, list[dict[str, object]]] = {rank: [] for rank in range(4)}
    work: dict[int, list[dict[str, object]]] = {rank: [] for rank in range(4)}
    for step, layer, kind in product(range(steps), range(layers), ("tp", "dp")):
        groups = {rank: name for name, ranks in members.items() if name.startswith(kind) for rank in ranks}
        length = {rank: 10 * MS + (late.get(rank, 0) if kind == "tp" else 0) for rank in range(4)}
        arrived = {rank: now[rank] + length[rank] for rank in range(4)}
        for rank, group in groups.items():
            work[rank].append({"kernel": len(work[rank]), "start_ns": now[rank], "duration_ns": length[rank]})
            end = max(arrived[other] for other in members[group]) + MS
            calls[rank].append(
                {"collective": len(calls[rank]), "group": group, "sequence": len(calls[rank]) // 2, "step": step,
                 "start_ns": arrived[rank], "duration_ns": end - arrived[rank]}
            )  # fmt: skip
            is_async = goes_on and kind == "dp" and layer < layers - 1
            now[rank] = arrived[rank] if is_async else end
    call = {"operation": "all_reduce", "name": "all_reduce", "size_bytes": 8, "on_device": True}
    kernel = {"kind": "compute", "name": "gemm"}
    times = {name: [0] * steps for name in ("start_ns", "window_start_ns")}
    ends = {name: [max(now.values())] * steps for name in ("end_ns", "window_end_ns")}
    marked = STEPS.frame(step=list(range(steps)), **times, **ends, window=["device"] * steps)
    listed = GROUPS.frame(group=list(members), name=list(members), members=list(members.values()))
    return Run.from_frames(
        {
            rank: {
                "collectives": COLLECTIVES.conform(pl.DataFrame([{**row, **call} for row in calls[rank]])),
                "kernels": KERNELS.conform(pl.DataFrame([{**row, **kernel} for row in work[rank]])),
                "steps": marked,
                "groups": listed,
            }
            for rank in range(4)
        }
    )


def chains(run: Run) -> list[tuple[object, ...]]:
    return run.analyse("wait_chains").select("ranks", "for_rank", "root_rank", "group_name", "waited_ns").rows()


def test_a_rank_that_waited_before_is_no_root() -> None:
    assert chains(two_by_two({3: LATE})) == [
        ("0", 2, 3, "dp_0", LATE),
        ("1", 3, 3, "dp_1", LATE),
        ("2", 3, 3, "tp_1", LATE),
    ]


def test_lateness_may_stem_from_a_call_before_the_last_of_the_group_if_nobody_waited_for_that() -> None:
    found = chains(two_by_two({3: MS}, layers=6, goes_on=True))

    assert {row[:4] for row in found} == {("0", 2, 3, "dp_0"), ("1", 3, 3, "dp_1"), ("2", 3, 3, "tp_1")}


def test_two_late_ranks_are_both_roots() -> None:
    found = chains(two_by_two({0: 2 * MS, 3: LATE}))

    assert ("1", 0, 0, "tp_0", 2 * MS) in found and ("2", 3, 3, "tp_1", LATE) in found
    assert ("0", 2, 3, "dp_0", LATE - 2 * MS) in found


def test_nobody_waits_if_all_arrive_together() -> None:
    assert chains(two_by_two({})) == []


def test_all_wait_for_the_slow_rank_of_a_data_parallel_job() -> None:
    (row,) = [row for row in chains(job(compute={5: 1.5}, jitter=0.0)) if row[4]]

    assert row == ("0, 1, 2, 3, 4, 6, 7", 5, 5, None, 10 * MS)


def test_in_a_step_without_waiting_the_median_knows_it() -> None:
    run = job(data_ns={3: 9 * MS}, jitter=0.0, steps=1)
    found = run.analyse("waits")

    assert set(found.select("for_rank", "waited_ns", "steps_waited", "steps").rows()) == {(3, 9 * MS, 1, 1)}


def test_a_rank_alone_waits_for_nobody_that_is_known() -> None:
    with pytest.raises(Unavailable, match="no communication was matched"):
        job(ranks=1).analyse("waits")


def test_waits_outside_of_steps_are_of_no_step() -> None:
    every = two_by_two({1: LATE})
    frames = {rank.rank: {name: rank.table(name).collect() for name in rank.rows} for rank in every.ranks}
    for tables in frames.values():
        calls = tables["collectives"]
        tables["collectives"] = calls.with_columns(step=pl.when(pl.col("step") > 0).then("step"))
        tables["steps"] = tables["steps"].filter(pl.col("step") > 0)

    rows = Run.from_frames(frames).analyse("waits")

    assert set(rows["steps"]) == {2}
    assert rows["mean_ns"].to_list() == every.analyse("waits")["mean_ns"].to_list()
