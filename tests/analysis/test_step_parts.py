"""The parts of a step add up to it, and agree with the answers that they are made of."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from stepscope.run import Run
from tests.analysis.jobs import MS, job
from tests.pipelines import Pipeline

RUNS = {
    "late": job(4, 4, compute={1: 1.5}, data_ns={2: 9 * MS}),
    "compiling": job(3, 4, once_ns={("data", 1, 1): 400 * MS}, marked="compile", gap_ns={0: MS}),
    "pipeline": Pipeline(stages=2, micro_batches=2, copies=2).run(),
    "one rank": job(1, 3),
}


def sums_of(*names: str) -> pl.Expr:
    return pl.col("length_ns").filter(pl.col("part").is_in(names)).sum()


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_parts_add_up_to_the_breakdown(run: Run) -> None:
    parts, whole = run.analyse("step_parts"), run.analyse("breakdown")
    idle = run.analyse("idle").group_by("rank", "step").agg(idle_ns=pl.col("idle_ns").sum())
    communication = ("wait", "transmit", "communication")
    busy = {"computing_ns": ("computing",), "communication_not_overlapped_ns": communication}
    sums = parts.group_by("rank", "step").agg(
        *(sums_of(*of).alias(name) for name, of in busy.items()),
        sums_of("memory").alias("memory_not_overlapped_ns"),
        pl.col("length_ns").sum().alias("window_ns"),
    )
    names = ["rank", "step", *busy, "memory_not_overlapped_ns", "window_ns"]

    assert_frame_equal(sums.sort("rank", "step").select(names), whole.select(names))
    assert idle["idle_ns"].sum() == whole["free_ns"].sum()


def test_who_waits_for_a_late_rank_waits_and_a_single_rank_knows_nothing_of_it() -> None:
    late = RUNS["late"].analyse("time_parts").pivot("part", index="rank", values="mean_ns").sort("rank")
    alone = RUNS["one rank"].analyse("time_parts")["part"].to_list()

    assert late["wait"][0] > 9 * MS
    assert late["data_loading"][2] > late["data_loading"][0] + 6 * MS
    assert "wait" not in alone


def test_a_start_up_step_is_no_part_of_the_mean() -> None:
    run = job(2, 6, once_ns={("compute", 1, 0): 900 * MS, ("compute", 1, 1): 900 * MS})
    means, whole = run.analyse("time_parts"), run.analyse("time_by_rank")

    assert whole["left_out_step"].to_list() == [1, 1]
    sums = means.group_by("rank").agg(pl.col("mean_ns").sum(), pl.col("steps").first()).sort("rank")
    assert sums["mean_ns"].to_list() == pytest.approx(whole["window_ns"].to_list(), abs=5)
    assert sums["steps"].to_list() == whole["steps"].to_list()


def test_the_job_is_the_mean_of_its_ranks_and_names_the_rank_with_most() -> None:
    run = RUNS["late"]
    parts, ranks = run.analyse("job_parts"), run.analyse("time_parts")

    computing = ranks.filter(pl.col("part") == "computing")
    row = parts.row(by_predicate=pl.col("part") == "computing", named=True)
    assert row["mean_ns"] == round(computing["mean_ns"].mean())
    assert (row["max_rank"], row["max_ns"]) == (1, computing["mean_ns"].max())
    assert parts["share_ratio"].sum() == pytest.approx(1)
