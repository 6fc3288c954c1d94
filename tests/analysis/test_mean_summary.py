"""The mean step by class of work: averaged as the mean step is, over all steps of all ranks."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.step.mean_summary import mean_summary, rank_summaries
from stepscope.report.time_split import shares
from tests.builders import MS, make_run

PARTS = pl.DataFrame(
    {
        "rank": [0, 0, 0, 0, 1],
        "step": [1, 1, 2, 3, 1],
        "group": ["computing", "idle", "computing", "computing", "communication"],
        "part": ["matmul", "idle", "matmul", "vector", "wait"],
        "length_ns": [900, 100, 10, 20, 50],
        "share_ratio": [0.9, 0.1, 1.0, 1.0, 1.0],
        "kernel_ns": [1000, None, 10, 25, None],
        "count": [5, None, 1, 2, None],
    },
    schema_overrides={"rank": pl.Int32, "step": pl.Int32},
)
AVERAGED = pl.DataFrame(
    {"rank": [0, 1], "steps": [2, 1], "left_out_step": [1, None]}, schema_overrides={"rank": pl.Int32}
).with_columns(pl.col("left_out_step").cast(pl.Int32))
"""The first step of rank 0 starts things up."""


def test_a_rank_is_averaged_without_the_step_that_its_mean_leaves_out() -> None:
    rows = rank_summaries(PARTS, AVERAGED)

    assert rows.select("rank", "part", "mean_ns", "share_ratio", "kernel_ns", "kernels").rows() == [
        (0, "matmul", 5, pytest.approx(1 / 3), 5, 0.5),
        (0, "vector", 10, pytest.approx(2 / 3), 12, 1.0),
        (1, "wait", 50, 1.0, None, None),
    ]


def test_the_job_is_averaged_over_all_steps_of_all_ranks() -> None:
    rows = mean_summary(rank_summaries(PARTS, AVERAGED))

    assert rows.select("part", "mean_ns", "max_rank", "max_ns").rows() == [
        ("matmul", 3, 0, 5),
        ("vector", 7, 0, 10),
        ("wait", 17, 1, 50),
    ]
    assert rows["share_ratio"].sum() == pytest.approx(1)


def test_its_groups_are_the_shares_of_the_verdict() -> None:
    run = make_run(ranks=4, steps=4, late={2: 30 * MS})

    found = run.analyse("mean_summary").group_by("group").agg(pl.col("share_ratio").sum())

    split = shares(run.analyse("time_by_rank"))
    groups = {"computing": "computing_ns", "communication": "communication_not_overlapped_ns", "idle": "free_ns"}
    for group, ratio in found.iter_rows():
        assert ratio == pytest.approx(split[groups[group]], abs=1e-6)
    assert run.analyse("mean_summary")["mean_ns"].sum() == run.analyse("time_by_rank")["window_ns"].mean()
