"""What holds of the replay of any job, and of what is blamed by it: random traces, and jobs of the benchmark."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import polars as pl
from hypothesis import assume, given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from made_up_jobs import Job as Traces
from made_up_jobs import jobs
from simulated.faults import Fault, kernels, launches, waits_for_data
from simulated.frames import run_of
from simulated.layouts import MS, US, Shape
from simulated.truth import Job
from stepscope.analysis.methods.job_graph import JobGraph, job_graph
from stepscope.errors import Unavailable
from stepscope.run import Run
from test_properties import opened, sampled

LENGTHS = ("duration_ns", "self_ns", "wait_ns", "transmit_ns", "synchronization_ns")


def asked(run: Run, question: str) -> pl.DataFrame | None:
    try:
        return run.analyse(question)
    except Unavailable:
        return None


def graph_of(run: Run) -> JobGraph | None:
    """The whole graph of a job; None if nothing of its work was recorded."""
    work, dependencies = asked(run, "work"), asked(run, "dependencies")
    if work is None or dependencies is None or work.is_empty():
        return None
    return job_graph(work, dependencies, asked(run, "arrival"), asked(run, "clocks"))


def check_replay(graph: JobGraph, chance: Random) -> None:
    """What must hold of a graph whatever it is a recording of."""
    simulation = graph.simulation
    assert simulation.left_out.is_empty()
    assert simulation.violated_ns.sum() == 0
    assert_frame_equal(simulation.run(), graph.nodes.select("start_ns", "end_ns"))
    assert graph.step_times().equals(graph.recorded_step_times())
    lengths = simulation.duration_ns
    more = lengths + pl.Series([chance.choice((0, 0, 3, 1000)) for _ in range(len(lengths))])
    less = lengths - (lengths * pl.Series([chance.choice((0.0, 0.3, 1.0)) for _ in range(len(lengths))])).cast(pl.Int64)
    ends = [simulation.ends(each) for each in (less, lengths, more)]
    assert (ends[0] <= ends[1]).all() and (ends[1] <= ends[2]).all()
    for each, end in zip((less, lengths, more), ends, strict=True):
        path = simulation.critical_path(duration_ns=each)
        assert path["end_ns"][-1] == end.max()
        own = each.gather(path["node"]).sum() + simulation.lag_ns.gather(path["node"]).sum()
        assert path["end_ns"][-1] == simulation.start_ns[path["node"][0]] + own


@sampled(40)
@given(jobs(), st.randoms(use_true_random=False))
def test_of_any_traces_the_replay_is_the_trace_and_changes_with_durations(job: Traces, chance: Random) -> None:
    with opened(job) as run:
        graph = graph_of(run)
    if graph is not None:
        check_replay(graph, chance)


@sampled(25)
@given(jobs())
def test_of_any_traces_no_answer_contradicts_another(job: Traces) -> None:
    with opened(job) as run:
        replay, same = asked(run, "replay"), asked(run, "what_if")
        path, spare, slow = (asked(run, name) for name in ("critical_path", "slack", "slow_ranks"))

    if same is None or path is None or spare is None:
        assert same is path is spare is None
        return
    assert same["saving_ns"].to_list() == [0] * same.height
    sums = path.group_by("step").agg(total=(pl.col("duration_ns") + pl.col("gap_ns")).sum())
    whole = same.filter(pl.col("replayed_ns") > 0).join(sums, on="step", how="left", maintain_order="left")
    assert whole["total"].to_list() == whole["replayed_ns"].to_list()
    assert path.select(pl.min_horizontal("duration_ns", "gap_ns") >= 0).to_series().all()
    assert (spare["slack_ns"] >= 0).all()
    assert spare["path_ratio"].is_between(0, 1).all()
    on_path = path.group_by("rank", "step").agg(length=(pl.col("duration_ns") + pl.col("gap_ns")).sum())
    shared = spare.join(on_path, on=["rank", "step"])
    assert shared["path_ns"].equals(shared["length"].alias("path_ns"))
    if replay is not None:
        assert replay["replayed_ns"].equals(same["replayed_ns"])
    if slow is not None and slow.height and replay is not None:
        assert slow["cost_ns"].sum() <= replay["replayed_ns"].mean()


SHAPES = st.builds(
    Shape,
    ranks=st.sampled_from((4, 8)),
    tensor=st.sampled_from((1, 2)),
    stages=st.sampled_from((1, 2)),
    steps=st.sampled_from((1, 4)),
    layers=st.just(1),
    layer_kernels=st.sampled_from((2, 6)),
    micro_batches=st.just(2),
    sharded=st.booleans(),
    synchronises=st.booleans(),
    kernel_ns=st.sampled_from((15 * US, 150 * US)),
    gap_ns=st.sampled_from((6 * US, 30 * US)),
    ranks_per_host=st.sampled_from((2, 8)),
    clock_spread_ns=st.sampled_from((0, 3 * MS)),
    stall_ns=st.just(MS),
    stalls=st.sampled_from((0.0, 0.3)),
    seed=st.integers(0, 99),
)
FAULTS = st.lists(
    st.builds(
        lambda rank, change: Fault("any", "rank", (rank,), change),
        st.integers(0, 3),
        st.sampled_from((kernels(1.4), launches(15 * US), waits_for_data(3 * MS))),
    ),
    max_size=2,
)


@sampled(15)
@given(SHAPES, FAULTS, st.randoms(use_true_random=False))
def test_of_any_job_the_replay_is_the_recording_and_changes_with_durations(
    shape: Shape, faults: list[Fault], chance: Random
) -> None:
    graph = graph_of(run_of(Job("any", shape, faults)))

    assert graph is not None
    check_replay(graph, chance)


@sampled(10)
@given(SHAPES, FAULTS)
def test_of_any_job_no_more_is_claimed_than_there_is(shape: Shape, faults: list[Fault]) -> None:
    run = run_of(Job("any", shape, faults))
    slow, ideal, each = run.analyse("slow_ranks"), run.analyse("replay"), run.analyse("what_if")

    step_ns = each["recorded_ns"].mean()
    assert slow["cost_ns"].sum() <= step_ns
    assert (slow["cost_ns"] <= slow["saving_high_ns"]).all()
    assert (slow["saving_low_ns"] <= slow["cost_ns"]).all()
    assert (ideal["ideal_ns"].sum() <= ideal["replayed_ns"].sum()) or shape.steps == 1
    for row in slow.filter(pl.col("unit_kind") == "rank").iter_rows(named=True):
        mended = run.analyse("what_if", without=f"rank={row['rank']}")
        assert mended["saving_ns"].mean() >= row["alone_ns"] - 0.002 * step_ns


Tables = Mapping[int, Mapping[str, pl.DataFrame]]


@cache
def example() -> Tables:
    """Two hosts with clocks of their own; rank 5 computes slowly, and rank 2 waits for data."""
    shape = Shape(ranks=8, steps=5, layers=2, layer_kernels=4, tensor=2, ranks_per_host=4, clock_spread_ns=2 * MS)
    faults = [Fault("computing", "rank", (5,), kernels(1.3)), Fault("data", "rank", (2,), waits_for_data(4 * MS))]
    run = run_of(Job("example", shape, faults))
    return {
        rank.rank: {name: rank.table(name).drop("rank", strict=False).collect() for name in rank.rows}
        for rank in run.ranks
    }


ANSWERS: tuple[tuple[str, dict[str, str | bool]], ...] = (
    ("slow_ranks", {}),
    ("late_ranks", {}),
    ("replay", {}),
    ("what_if", {"ideal": True}),
    ("what_if", {"bandwidth": "2x"}),
    ("what_if", {"scale": "kind=computing,0.5"}),
)


def told(tables: Tables, names: Mapping[int, int]) -> list[list[dict[str, object]]]:
    """The answers, with the ranks' first names."""
    run = Run.from_frames({rank: dict(frames) for rank, frames in tables.items()})
    found = [run.analyse(question, **options).to_dicts() for question, options in ANSWERS]
    found.append(run.analyse("slack").sort("rank", "step").select("rank", "step", "slack_ns").to_dicts())
    return [sorted((_named(row, names) for row in rows), key=str) for rows in found]


def _named(row: dict[str, object], names: Mapping[int, int]) -> dict[str, object]:
    back = {new: old for old, new in names.items()}
    found = dict(row)
    if isinstance(row.get("rank"), int):
        found["rank"] = back[row["rank"]]  # type: ignore[index]
    if isinstance(row.get("ranks"), str):
        found["ranks"] = ", ".join(str(one) for one in sorted(back[int(one)] for one in row["ranks"].split(", ")))  # type: ignore[attr-defined]
    if isinstance(row.get("late_ranks"), list):
        found["late_ranks"] = sorted(back[one] for one in row["late_ranks"])  # type: ignore[attr-defined]
    if row.get("unit_kind") == "rank":
        found["unit"] = found["ranks"]
    return found


@sampled(4)
@given(st.permutations(range(8)))
def test_other_numbers_of_ranks_change_names_alone(order: list[int]) -> None:
    names = dict(enumerate(order))
    assume(order != sorted(order))
    renamed = {names[rank]: _with_members(frames, names) for rank, frames in example().items()}

    assert told(renamed, names) == told(example(), dict(enumerate(range(8))))


def _with_members(frames: Mapping[str, pl.DataFrame], names: Mapping[int, int]) -> dict[str, pl.DataFrame]:
    groups = frames["groups"].with_columns(members=pl.col("members").list.eval(pl.element().replace_strict(names)))
    calls = frames["collectives"].with_columns(peer=pl.col("peer").replace(names))
    return {**frames, "groups": groups.cast(frames["groups"].schema), "collectives": calls}  # type: ignore[arg-type]


def shifted(frames: Mapping[str, pl.DataFrame], ns: int) -> dict[str, pl.DataFrame]:
    return {
        name: frame.with_columns(pl.col(c) + ns for c in frame.columns if c.endswith("_ns") and c not in LENGTHS)
        for name, frame in frames.items()
    }


@sampled(4)
@given(st.integers(-(10**10), 10**10), st.integers(-(10**10), 10**10))
def test_other_clocks_of_hosts_change_nothing(one: int, other: int) -> None:
    """To within what the ends of calls show of clocks: 2 us."""
    moved = {rank: shifted(frames, one if rank < 4 else other) for rank, frames in example().items()}
    same = dict(enumerate(range(8)))

    for before, after in zip(told(example(), same), told(moved, same), strict=True):
        assert len(before) == len(after)
        for row, found in zip(before, after, strict=True):
            for name, value in row.items():
                close = abs(value - found[name]) <= 10 * US if name.endswith("_ns") else None  # type: ignore[operator]
                assert close or value == found[name] or name.endswith(("ratio", "score", "chance")), name


@sampled(3)
@given(st.randoms(use_true_random=False))
def test_the_order_of_files_and_their_names_do_not_matter(chance: Random) -> None:
    job = replace(Job("files", Shape(ranks=4, steps=3, layers=1), [Fault("any", "rank", (2,), kernels(1.4))]))
    expected = told_of(run_of(job))
    frames = [(rank.rank, {name: rank.table(name).drop("rank", strict=False).collect() for name in rank.rows})
              for rank in run_of(job).ranks]  # fmt: skip
    chance.shuffle(frames)
    mixed = {rank: {n: f.sample(fraction=1, shuffle=True, seed=1) if n in MIXED else f for n, f in tables.items()}
             for rank, tables in frames}  # fmt: skip

    assert told_of(Run.from_frames(mixed)) == expected


MIXED = ("kernels", "slices", "operators", "synchronizations")
"""Tables whose rows may come in any order."""


def told_of(run: Run) -> list[list[dict[str, object]]]:
    return [run.analyse(question, **options).to_dicts() for question, options in ANSWERS]
