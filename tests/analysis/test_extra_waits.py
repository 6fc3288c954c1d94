"""A host that waits for its device more often than others loses more than the time of its extra work."""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.analysis.methods.costs import ReplayCosts
from stepscope.analysis.methods.extra_waits import extra_waits
from stepscope.analysis.methods.job_graph import JobGraph, job_graph, without_waits
from stepscope.analysis.replay.what_if import what_if
from stepscope.analysis.replay.work_graph import changing_work, lone_waits, own_cuts, work_index
from stepscope.run import Run
from tests.analysis.test_rank_host_calls import MS, host

PIECES = {
    "usual": [("host", 0, 10, None), ("stream 7", 10, 110, 10), ("host", 10, 20, None), ("stream 7", 110, 210, 20)],
    "waits": [
        ("host", 0, 10, None),
        ("stream 7", 10, 110, 10),
        ("waiting", 110, 112, None),
        ("host", 112, 142, None),
        ("stream 7", 142, 242, 142),
    ],
}
BEFORE = {
    "usual": [(1, 0, "launch"), (2, 0, "lane"), (3, 1, "lane"), (3, 2, "launch")],
    "waits": [(1, 0, "launch"), (2, 0, "lane"), (2, 1, "synchronisation"), (3, 2, "lane"), (4, 3, "launch")],
}


def graph(*ranks: str) -> JobGraph:
    return job_graph(*frames(*ranks), None, None)


def frames(*ranks: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A step in which each rank launches two kernels, and may wait in between for the first."""
    work = [
        (rank, number, 3, "host" if lane == "waiting" else lane, kind(lane), start, end, launch, None)
        for rank, what in enumerate(ranks)
        for number, (lane, start, end, launch) in enumerate(PIECES[what])
    ]
    names = ("rank", "work", "step", "lane", "kind", "start_ns", "end_ns", "launch_ns", "collective")
    edges = [(rank, *edge) for rank, what in enumerate(ranks) for edge in BEFORE[what]]
    rows = pl.DataFrame(
        work, schema=dict.fromkeys(names, pl.Int64) | {"lane": pl.String, "kind": pl.String}, orient="row"
    )
    rows = rows.with_columns(pl.col("rank", "step").cast(pl.Int32), name=pl.lit(None, pl.String))
    before = pl.DataFrame(edges, schema=["rank", "work", "before", "why"], orient="row")
    return rows, before.with_columns(pl.col("rank").cast(pl.Int32))


def kind(lane: str) -> str:
    return {"host": "dispatch", "waiting": "waiting"}.get(lane, "computing")


def excess(*own_ns: int) -> pl.DataFrame:
    rows = {"rank": range(len(own_ns)), "step": 3, "kind": "dispatch", "program": 0, "own_ns": own_ns}
    found = pl.DataFrame(rows).with_columns(pl.col("rank", "step").cast(pl.Int32))
    return found.with_columns(excess_ns=pl.col("own_ns") - 20)


SUSPECTS = pl.DataFrame({"suspect": [0], "rank": [2], "step": [3], "kind": ["dispatch"]}).with_columns(
    pl.col("rank", "step").cast(pl.Int32)
)


def test_a_wait_that_others_do_not_have_goes_with_what_the_host_did_after_it() -> None:
    job = graph("usual", "usual", "waits")

    assert job.step_times().to_list() == [242]
    assert extra_waits(job, SUSPECTS, excess(20, 20, 40))["node"].to_list() == [10]
    assert ReplayCosts(job, excess(20, 20, 40), SUSPECTS).saved(frozenset([0])) == [32]


def test_what_if_leaves_out_the_same_waits() -> None:
    nobody: dict[str, Any] = dict.fromkeys(("groups", "operators", "links", "transports"))
    layout = pl.DataFrame({"rank": [0, 1, 2]}, schema={"rank": pl.Int32})
    ranks = pl.LazyFrame({"rank": [0, 1, 2], "host": "host"}, schema_overrides={"rank": pl.Int32})
    job, own = graph("usual", "usual", "waits"), excess(20, 20, 40)
    prepared = {
        "changing_work": changing_work(lambda: job),
        "work_index": work_index(lambda: job, None),
        "own_cuts": own_cuts(lambda: job, own, None),
        "lone_waits": lone_waits(lambda: job, own),
    }
    given: dict[str, Any] = {name: lambda value=value: value for name, value in prepared.items()}
    asked: dict[str, Any] = {"ranks": ranks, "parallel_layout": layout, "without": "rank=2,kind=dispatch"}
    found = what_if(**given, **asked, **nobody)

    assert found.select("saving_ns", "less_ns").rows() == [(32, 22)]


def test_without_waits_a_job_is_replayed_anew() -> None:
    job = graph("usual", "usual", "waits")
    lag_ns = job.simulation.lag_ns

    assert job.step_times().to_list() == [242]
    assert without_waits(job).step_times(lag_ns=lag_ns).to_list() == [210]
    assert (
        without_waits(job).step_times().to_list()
        == without_waits(graph("usual", "usual", "waits")).step_times().to_list()
    )


def test_waits_of_half_the_ranks_or_of_ranks_slow_at_something_else_stay() -> None:
    computing = SUSPECTS.with_columns(kind=pl.lit("computing"))

    assert extra_waits(graph("waits", "usual", "waits"), SUSPECTS, excess(40, 20, 40)).is_empty()
    assert extra_waits(graph("usual", "usual", "waits"), computing, excess(20, 20, 40)).is_empty()
    assert extra_waits(graph("usual", "usual", "usual"), SUSPECTS, excess(20, 20, 40)).is_empty()


def test_extra_waits_are_named_as_the_reason_of_what_the_host_does_after_them() -> None:
    busy, wait = ("operator", "aten::copy_", 20 * MS, 170 * MS), ("runtime", "cudaStreamSynchronize", 50 * MS, MS)
    run = Run.from_frames({rank: host(*([busy] if rank != 2 else [wait])) for rank in range(4)})

    found = run.analyse("host_patterns").row(2, named=True)

    assert (found["what"], found["names"]) == ("synchronisation", ["cudaStreamSynchronize"])
    assert (found["calls"], found["typical_calls"], found["named_ns"]) == (1, 0, 169 * MS)
