"""What makes steps slower than with ideal operations: figures by hand, and those published of a real job."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from operation_traces import Pipeline, usual, write
from stepscope import Unavailable, open_run
from stepscope.analysis.replay.operation_graph import work_edges
from stepscope.run import Run

SECOND = 10**9


def slow_rank(way: str, replica: int, stage: int, *_: int) -> float:
    """Forward takes three times as long on the last stage of the second replica."""
    return 3.0 if (way, replica, stage) == ("forward", 1, 1) else usual(way)


def seconds(answer: pl.DataFrame, kind: str) -> dict[str | None, tuple[float, float]]:
    """Unit to its step times alone and without it."""
    rows = answer.filter(kind=kind).select("unit", "alone_ns", "without_ns").rows()
    return {unit: (alone / SECOND, without / SECOND) for unit, alone, without in rows}


def test_figures_by_hand(tmp_path: Path) -> None:
    write(tmp_path, Pipeline(late=0.5), length=slow_rank)
    answer = open_run(tmp_path).analyse("slowdowns")
    job = answer.filter(kind="job").row(0, named=True)

    assert [job[name] / SECOND for name in ("recorded_ns", "replayed_ns", "ideal_ns")] == [17.5, 17.0, 14.5]
    assert (job["slowdown_factor"], job["launch_factor"]) == pytest.approx((17 / 14.5, 17.5 / 17))
    assert (job["unmatched"], job["error_ratio"]) == (0, 0.0)
    kinds = seconds(answer, "operation")
    assert kinds.pop("forward-compute") == (17.0, 14.5)
    assert set(kinds.values()) == {(14.5, 17.0)} and {"backward-compute", "forward-pp-comm", "optimizer"} < set(kinds)
    assert seconds(answer, "replica") == {"1": (17.0, 14.5), "0": (14.5, 17.0)}
    assert seconds(answer, "stage") == {"1": (17.5, 14.0), "0": (14.0, 17.5)}
    ranks = answer.filter(kind="rank").select("unit", "replica", "stage", "alone_ns").rows()
    assert [(*place, ns / SECOND) for *place, ns in ranks] == [
        ("6", 1, 1, 17.0),
        ("4", 0, 1, 14.5),
        ("0", 0, 0, 14.0),
        ("2", 1, 0, 14.0),
    ]
    shares = answer.filter(pl.col("kind").is_in(["slowest_ranks", "last_stage"])).select("unit", "explained")
    assert shares.rows() == [("6", pytest.approx(3 / 2.5)), ("1", pytest.approx(3 / 2.5))]


def test_each_step_has_its_own_figures(tmp_path: Path) -> None:
    write(tmp_path, length=lambda way, *place: usual(way) * (2 if place[-1] == 5 else 1))
    run = open_run(tmp_path)
    jobs = run.analyse("step_slowdowns").filter(kind="job").select("step", "replayed_ns", "ideal_ns").rows()

    assert [(step, replayed / SECOND) for step, replayed, _ in jobs] == [(3, 13.0), (5, 22.0)]
    assert len({ideal for *_, ideal in jobs}) == 1


@pytest.mark.parametrize(
    "pipeline",
    [
        Pipeline(data=3, stages=4, micro_batches=6),
        Pipeline(data=1, stages=3, tensor=1, micro_batches=2),
        Pipeline(data=2, stages=1, micro_batches=3),
        Pipeline(data=2, stages=2, chunks=2, micro_batches=3),
        Pipeline(data=1, stages=3, chunks=2, micro_batches=2),
    ],
)
def test_a_pipeline_without_delays_is_replayed_as_it_was(tmp_path: Path, pipeline: Pipeline) -> None:
    """With other lengths in each micro-batch, and a last stage that takes longer."""

    def length(way: str, replica: int, stage: int, one: int, step: int) -> float:
        return usual(way) + 0.25 * ((one * 7 + replica * 3 + step) % 5) + (stage == pipeline.stages - 1)

    write(tmp_path, pipeline, length=length)
    rows = open_run(tmp_path).analyse("step_slowdowns")

    jobs = rows.filter(kind="job")
    assert (jobs["recorded_ns"] - jobs["replayed_ns"]).abs().max() < 1000  # rounding of 32-bit times
    assert jobs["error_ratio"].abs().max() < 1e-9 and set(jobs["unmatched"]) == {0}
    if pipeline.stages > 1:
        assert (rows.filter(kind="last_stage")["explained"] > 0.5).all()


def test_calls_beside_computing_hold_up_only_what_needs_them(tmp_path: Path) -> None:
    """Gradients are reduced while the last backward pass runs, and the optimizer starts when both are done."""

    def early(rows: pl.DataFrame) -> pl.DataFrame:
        start = pl.when(optype="grads-reduce-scatter").then(pl.col("start_ts").min().over("optype", "stage") - 1.5)
        took = pl.when(optype="grads-reduce-scatter").then(2.25)
        return rows.with_columns(start_ts=start.otherwise("start_ts"), duration=took.otherwise("duration"))

    write(tmp_path, change=early)
    job = open_run(tmp_path).analyse("slowdowns").row(0, named=True)

    # computed from 9 to 11, reduced from 9.5 to 11.75, and the optimizer started at 12
    assert (job["replayed_ns"] / SECOND, job["recorded_ns"] / SECOND) == (12.0, 13.0)
    assert job["error_ratio"] == 0


def test_pieces_of_work_have_the_edges_of_their_operations(tmp_path: Path) -> None:
    write(tmp_path, steps=(3,))
    run = open_run(tmp_path)
    kernels, collectives = (run.table(name).filter(pl.col("rank") == 0) for name in ("kernels", "collectives"))
    end = pl.col("start_ns") + pl.col("duration_ns")
    kept = ["rank", "step", "name", "start_ns"]
    parts = [
        kernels.filter(pl.col("kind") == "compute").select(*kept, "kernel", end_ns=end, kind=pl.lit("computing")),
        collectives.select(*kept, "collective", end_ns=end, kind=pl.lit("communication")),
    ]
    work = pl.concat([part.collect() for part in parts], how="diagonal").sort("start_ns", "end_ns", "name")
    work = work.with_columns(work=pl.int_range(pl.len(), dtype=pl.Int64))
    edges = work_edges(work, kernels, collectives)
    named = edges.join(work.select("work", "name"), on="work").join(
        work.select(before="work", earlier="name"), on="before"
    )

    assert sorted(named.select("name", "earlier", "why").rows()) == sorted(
        [
            ("forward-compute", "params-all-gather", "operation"),
            ("forward-compute", "forward-compute", "operation"),
            ("forward-send", "forward-compute", "micro_batch"),
            ("forward-send", "forward-compute", "micro_batch"),
            ("forward-send", "forward-send", "operation"),
            ("backward-compute", "forward-compute", "operation"),
            ("backward-compute", "backward-recv", "micro_batch"),
            ("backward-recv", "backward-recv", "operation"),
            ("backward-recv", "backward-compute", "order"),
            ("backward-compute", "backward-compute", "operation"),
            ("backward-compute", "backward-recv", "micro_batch"),
            ("grads-reduce-scatter", "backward-compute", "operation"),
            ("optimizer", "grads-reduce-scatter", "operation"),
        ]
    )
    without = kernels.with_columns(micro_batch=pl.lit(None, pl.Int32))
    assert work_edges(work, without, collectives).is_empty()


def test_recordings_without_micro_batches_have_no_ideal(shared: Path) -> None:
    with pytest.raises(Unavailable, match="micro-batch"):
        open_run(shared / "data/pytorch/dlrm_8rank_v100").analyse("slowdowns")


@pytest.fixture
def published(shared: Path) -> tuple[Run, Path]:
    return open_run(shared / "data/stragglers"), shared / "data/stragglers"


def test_the_figures_of_a_real_job_are_those_published(published: tuple[Run, Path]) -> None:
    run, folder = published
    told = json.loads((folder / "result-AR.json").read_text())
    steps, whole = run.analyse("step_slowdowns"), run.analyse("slowdowns")

    def near(found: float, known: float) -> bool:
        return found == pytest.approx(known, rel=1e-4)

    kinds = {"operation": "optype", "replica": "dp_rank", "stage": "stage"}
    checked = 0
    for row in steps.iter_rows(named=True):
        step, kind = str(row["step"]), row["kind"]
        if kind == "job":
            assert near(row["recorded_ns"] / SECOND, told["step_t_base"][step])
            assert near(row["replayed_ns"] / SECOND, told["step_t_nodelay"][step])
            assert near(row["ideal_ns"] / SECOND, told["step_t_noblk"][step])
            assert near(row["slowdown_factor"], told["blocking_step_slowdown"][step])
            assert near(row["launch_factor"], told["launch_step_slowdown"][step])
        elif kind in kinds:
            known = told[f"blocking_decompose_by_{kinds[kind]}_per_step"][step]
            assert near(row["slowdown_factor"], known[row["unit"]])
        checked += kind == "job" or kind in kinds
    assert checked == 44 * (1 + 11 + 4 + 4)
    for row in whole.filter(pl.col("kind").is_in(list(kinds))).iter_rows(named=True):
        assert near(row["slowdown_factor"], told[f"blocking_decompose_by_{kinds[row['kind']]}"][row["unit"]])
    job = whole.row(0, named=True)
    assert near(job["slowdown_factor"], told["blocking_slowdown"])
    assert near(job["launch_factor"], told["launch_slowdown"])
    for kind, file in (("slowest_ranks", "mw-AR.json"), ("last_stage", "ms-AR.json")):
        share, row = json.loads((folder / file).read_text()), whole.filter(kind=kind).row(0, named=True)
        assert near(row["without_ns"] / SECOND, share["trem"]) and near(row["alone_ns"] / SECOND, share["tadd"])
        assert row["explained"] == pytest.approx(share["rem"], rel=5e-3)
    assert whole.filter(kind="rank")["unit"][0] == whole.filter(kind="slowest_ranks")["unit"][0] == "0"
