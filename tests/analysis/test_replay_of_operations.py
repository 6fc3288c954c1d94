"""Questions about whole jobs, asked of operation traces: what if, critical path, slow ranks."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from operation_traces import Pipeline, usual, write
from stepscope import open_run

SECOND = 10**9


def slow_rank(way: str, replica: int, stage: int, *_: int) -> float:
    """Rank 10 of 16 (stage 1, replica 1) computes for twice as long."""
    return usual(way) * (2 if (replica, stage) == (1, 1) else 1)


@pytest.mark.parametrize(
    "pipeline",
    [
        Pipeline(late=0.5),
        Pipeline(data=3, stages=4, micro_batches=6),
        Pipeline(data=2, stages=1, micro_batches=3),
        Pipeline(data=2, stages=2, chunks=2, micro_batches=3),
    ],
)
def test_the_job_is_replayed_as_its_steps_are(tmp_path: Path, pipeline: Pipeline) -> None:
    write(tmp_path, pipeline, length=slow_rank)
    run = open_run(tmp_path)
    steps = run.analyse("step_slowdowns").filter(kind="job")
    replayed = run.analyse("replay")

    assert replayed["recorded_ns"].to_list() == steps["recorded_ns"].to_list()
    assert replayed["replayed_ns"].to_list() == steps["replayed_ns"].to_list()


def test_the_slow_rank_is_named_with_what_it_costs(tmp_path: Path) -> None:
    pipeline = Pipeline(data=4, stages=2, micro_batches=4)
    write(tmp_path, pipeline, length=slow_rank, steps=range(6))
    other = tmp_path / "healthy"
    other.mkdir()
    write(other, pipeline, steps=range(6))
    run, healthy = open_run(tmp_path / "trace-AB.parquet"), open_run(other)
    saved = sum(run.analyse("replay")["recorded_ns"]) - sum(healthy.analyse("replay")["recorded_ns"])
    slow = run.analyse("slow_ranks").row(0, named=True)

    assert slow["ranks"] == "10" and slow["kind"] == "computing"
    assert slow["cost_ns"] == pytest.approx(saved / 6, rel=0.01)
    path = run.analyse("critical_path").filter(step=3)
    most = path.group_by("rank").agg(pl.col("duration_ns").sum()).sort("duration_ns")["rank"][-1]
    assert most == 10
    assert healthy.analyse("slow_ranks").is_empty()


def test_what_changes_in_a_step_does_not_reach_the_next_one(tmp_path: Path) -> None:
    write(tmp_path, Pipeline(), length=lambda *at: usual(*at) * (3 if at[-1] == 5 else 1), steps=(3, 5, 6))
    changed = open_run(tmp_path).analyse("what_if", scale="step=5,0.5")

    saved = dict(changed.select("step", "saving_ns").rows())
    assert saved[3] == saved[6] == 0 and saved[5] > 5 * SECOND
