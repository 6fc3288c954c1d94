"""Statistics of calls over ranks, the longest calls and why, process groups, hidden communication by parallelism."""

from __future__ import annotations

import polars as pl
import pytest
from jobs import job

from builders import MS, make_run
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import COLLECTIVES, GROUPS, KERNELS, RANKS, STEPS


def test_calls_over_all_ranks() -> None:
    (row,) = make_run(4, 3, collective_ns=20 * MS, late={2: 6 * MS}).analyse("call_statistics").to_dicts()

    assert (row["operation"], row["count"], row["ranks"]) == ("all_reduce", 12, 4)
    assert (row["min_ns"], row["min_rank"], row["max_ns"], row["max_rank"]) == (20 * MS, 2, 26 * MS, 0)
    assert (row["q1_ns"], row["median_ns"], row["mean_ns"]) == (20 * MS, 26 * MS, 24_500_000)
    assert row["share_ratio"] == 1


def test_calls_of_each_rank() -> None:
    found = make_run(2, 3, late={1: 6 * MS}).analyse("call_totals")

    assert found.select("rank", "operation", "count", "total_ns").rows() == [
        (0, "all_reduce", 3, 78 * MS), (1, "all_reduce", 3, 60 * MS)
    ]  # fmt: skip


def test_a_call_is_short_on_the_rank_that_the_others_wait_for() -> None:
    found = make_run(4, 3, late={2: 6 * MS}).analyse("call_spread", limit=2)

    assert (
        found.select("ranks", "min_ns", "min_rank", "max_rank", "last_rank", "late_ns").rows()
        == [(4, 20 * MS, 2, 0, 2, 6 * MS)] * 2
    )
    assert found["step"].n_unique() == 2


def _reasons(run: Run) -> list[tuple[object, ...]]:
    rows = run.analyse("longest_calls").filter(pl.col("rank") == 0)
    return rows.select("last_rank", "reason").unique().sort("reason").rows()


def test_a_rank_that_computes_longer_is_the_reason() -> None:
    assert (3, "computing") in _reasons(job(4, 3, compute={3: 1.6}))


def test_a_host_that_launches_late_is_the_reason() -> None:
    run = job(4, 3, gap_ns={1: 4 * MS})
    # the first call of the recording has none before it
    assert set(_reasons(run)) == {(1, "idle"), (1, "unknown")}

    assert set(_reasons(_with_launches(run, 1000))) == {(1, "late launch"), (1, "unknown")}
    assert set(_reasons(_with_launches(run, 30 * MS))) == {(1, "idle"), (1, "unknown")}


def _with_launches(run: Run, before_ns: int) -> Run:
    """The run with the kernels of its calls, launched that long before they begin."""
    frames = {rank.rank: {name: rank.table(name).collect() for name in rank.rows} for rank in run.ranks}
    for tables in frames.values():
        calls = tables["collectives"].with_columns(pl.col("start_ns") - before_ns)
        kernels = KERNELS.frame(
            kernel=range(1000, 1000 + calls.height),
            start_ns=tables["collectives"]["start_ns"].to_list(),
            duration_ns=calls["duration_ns"].to_list(),
            kind=["communication"] * calls.height,
            name=["all_reduce"] * calls.height,
            launch_start_ns=calls["start_ns"].to_list(),
        )
        tables["kernels"] = pl.concat([tables["kernels"].drop("rank"), kernels.drop("rank", strict=False)])
    return Run.from_frames(frames)


def test_a_call_that_moves_much_data_needs_no_other_reason() -> None:
    run = make_run(2, 2, collective_ns=50 * MS, late={1: MS})

    assert {reason for _, reason in _reasons(run)} == {"transmission"}


def test_the_longest_calls_are_listed_for_each_rank() -> None:
    found = make_run(3, 4, late={2: 6 * MS}).analyse("longest_calls", limit=2)

    assert found["rank"].to_list() == [0, 0, 1, 1, 2, 2]
    assert set(found["late_ns"]) == {6 * MS}


def _groups(names: dict[str, tuple[str | None, list[int]]], **ranks: object) -> Run:
    frames = {
        rank: {
            "groups": GROUPS.frame(
                group=[key for key, (_, members) in names.items() if rank in members],
                name=[name for name, members in names.values() if rank in members],
                members=[members for _, members in names.values() if rank in members],
            ),
            "ranks": RANKS.frame(world_size=[4], **{name: [value] for name, value in ranks.items()}),
        }
        for rank in range(4)
    }
    return Run.from_frames(frames)


def test_groups_are_told_apart_by_their_names() -> None:
    named = {"a": ("TENSOR_MODEL_PARALLEL_GROUP", [0, 1]), "b": ("mesh_dp", [0, 2]), "c": ("default_pg", [0, 1, 2, 3])}
    found = _groups(named).analyse("process_groups")

    assert found.select("group", "parallelism", "member_ranks", "recorded").rows() == [
        ("c", "other", "0-3", 4), ("a", "tensor", "0, 1", 2), ("b", "data", "0, 2", 2)
    ]  # fmt: skip


def test_groups_without_names_are_told_apart_by_their_members() -> None:
    keyed: dict[str, tuple[str | None, list[int]]] = {"a": (None, [0, 1]), "b": (None, [1, 3]), "c": ("x", [0, 3])}
    found = _groups(keyed, parallelism='{"tensor_model_parallel_size": 2}').analyse("process_groups")

    assert dict(found.select("group", "parallelism").iter_rows()) == {"a": "tensor", "b": "data", "c": "other"}


def _overlapping(names: bool = True) -> Run:
    """A step of 100 ms: computing for 60, a data-parallel call from 50 to 80, a tensor-parallel one from 70 to 90."""
    tables = {
        "steps": STEPS.frame(
            step=[1], start_ns=[0], end_ns=[100 * MS], window_start_ns=[0], window_end_ns=[100 * MS], window=["device"]
        ),
        "kernels": KERNELS.frame(
            kernel=range(3),
            start_ns=[0, 50 * MS, 70 * MS],
            duration_ns=[60 * MS, 30 * MS, 20 * MS],
            kind=["compute", "communication", "communication"],
            name=["gemm", "a", "b"],
            step=[1] * 3,
        ),
        "collectives": COLLECTIVES.frame(
            collective=range(2),
            group=["a", "b"],
            sequence=[0, 0],
            operation=["all_reduce", "recv"],
            name=["a", "b"],
            start_ns=[50 * MS, 70 * MS],
            duration_ns=[30 * MS, 20 * MS],
            on_device=[True, True],
            step=[1, 1],
        ),
    }
    if names:
        tables["groups"] = GROUPS.frame(group=["a", "b"], name=["dp", "tp"], members=[[0, 1], [0, 2]])
    return Run.from_frames({0: tables})


def test_hidden_communication_by_parallelism() -> None:
    rows = _overlapping().analyse("rank_overlap").to_dicts()

    assert [
        (row["parallelism"], row["calls"], row["communication_ns"], row["communication_not_overlapped_ns"])
        for row in rows
    ] == [("data", 1, 30 * MS, 20 * MS), ("tensor", 1, 20 * MS, 20 * MS)]
    assert [row["share_ratio"] for row in rows] == pytest.approx([0.3, 0.2])
    assert [row["exposed_ratio"] for row in rows] == pytest.approx([2 / 3, 1])


def test_receives_of_unknown_groups_are_of_the_pipeline() -> None:
    assert _overlapping(names=False).analyse("rank_overlap")["parallelism"].to_list() == ["other", "pipeline"]


def test_calls_of_unrecorded_groups_are_of_the_only_parallelism_of_the_job() -> None:
    run = make_run(2, 2)
    data, both = (run.with_options({"parallel_layout": {"layout": text}}) for text in ("dp=2", "dp=2,ep=2"))

    assert data.analyse("overlap")["parallelism"].unique().to_list() == ["data"]
    assert both.analyse("overlap")["parallelism"].unique().to_list() == ["other"]


def test_hidden_communication_of_all_ranks() -> None:
    found = make_run(2, 2, compute_ns=60 * MS, collective_ns=20 * MS, late={1: 10 * MS}).analyse("overlap")

    shown = found.select("step", "parallelism", "ranks", "communication_ns", "exposed_ratio", "max_rank", "max_ns")
    assert shown.rows() == [
        (1, "data", 2, 25 * MS, 1.0, 0, 30 * MS), (2, "data", 2, 25 * MS, 1.0, 0, 30 * MS)
    ]  # fmt: skip


def test_the_times_of_a_step_add_up() -> None:
    found = make_run(2, 2, late={1: 10 * MS}).analyse("step_times")
    parts = pl.sum_horizontal("computing_ns", "communication_not_overlapped_ns", "memory_not_overlapped_ns", "free_ns")

    assert found.select(parts == pl.col("step_ns")).to_series().all()
    assert found.select("rank", "wait_ns", "transmit_ns").rows()[::2] == [(0, 10 * MS, 20 * MS), (1, 0, 20 * MS)]


def test_the_rank_with_most_exposed_communication_comes_first_with_its_worst_step() -> None:
    run = make_run(2, 3, late={1: 10 * MS})
    steps, found = run.analyse("step_times"), run.analyse("mean_times")
    exposed = steps.filter(rank=0)["communication_not_overlapped_ns"]

    assert found["rank"].to_list() == [0, 1]
    assert found["communication_not_overlapped_ns"].to_list() == [30 * MS, 20 * MS]
    first = found.row(0, named=True)
    assert (first["steps"], first["max_step"], first["max_ns"]) == (3, steps["step"][0], exposed.max())


def test_without_calls_there_are_no_longest_ones() -> None:
    with pytest.raises(Unavailable):
        Run.from_frames({0: {"ranks": RANKS.frame(world_size=[1])}}).analyse("longest_calls")


def test_groups_of_two_kinds_are_for_what_is_done_over_them() -> None:
    pairs = {"dp_cp": "data", "dp_modulo_exp": "data", "tp_exp": "expert", "tp_pp": "other", "world dp": "other"}
    found = _groups({name: (name, [0, 1, 2]) for name in pairs}).analyse("process_groups")

    assert dict(found.select("group", "parallelism").iter_rows()) == pairs
