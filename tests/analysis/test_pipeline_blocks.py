"""Forward and backward of each micro-batch: recorded, marked, or as a schedule orders them."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import SLICES
from tests.pipelines import MS, Made, Pipeline

FOUR = Pipeline()
WRONG = (pl.col("start_ns") != pl.col("true_start")) | (pl.col("end_ns") != pl.col("true_end"))


def truth(job: Pipeline) -> pl.DataFrame:
    """When each pass really runs."""
    rows = []
    for rank, one in enumerate(replace(job, marked=True).run().ranks):
        passes = one.table("kernels").collect()
        rows.append(
            passes.select(
                "step",
                "micro_batch",
                rank=pl.lit(rank, pl.Int32),
                direction="name",
                true_start=pl.col("start_ns"),
                true_end=pl.col("start_ns") + pl.col("duration_ns"),
            )
        )
    return pl.concat(rows)


def beside_truth(run: Run, job: Pipeline) -> pl.DataFrame:
    found = run.analyse("pipeline_blocks")
    joined = found.join(truth(job), on=["rank", "step", "direction", "micro_batch"])
    assert joined.height == found.height == job.stages * job.copies * job.steps * job.micro_batches * 2
    return joined


def test_recorded_passes_are_exact() -> None:
    job = replace(FOUR, marked=True)

    found = beside_truth(job.run(), job)

    assert found["known_by"].unique().to_list() == ["operations"]
    assert found.filter(
        (pl.col("start_ns") != pl.col("true_start")) | (pl.col("end_ns") != pl.col("true_end"))
    ).is_empty()


@pytest.mark.parametrize("job", [FOUR, Pipeline(stages=2, micro_batches=4, copies=2, named=False)])
def test_a_schedule_that_fits_says_what_it_can_and_nothing_wrong(job: Pipeline) -> None:
    found = beside_truth(job.run(), job)

    assert found["known_by"].unique().to_list() == ["1F1B"]
    assert found.filter(WRONG).is_empty()
    middle = found.filter(pl.col("stage").is_between(1, job.stages - 2))
    assert middle.filter(pl.any_horizontal(pl.col("start_ns", "end_ns").is_null())).is_empty()
    assert found.filter(direction="forward", stage=job.stages - 1)["start_ns"].null_count() == 0
    assert found.filter(direction="backward", stage=job.stages - 1)["end_ns"].null_count() == 0


def test_calls_in_the_order_of_no_schedule_say_nothing() -> None:
    def swap(rows: dict[int, Made]) -> None:  # rank 1 sends back its first gradient before it has it
        for call in rows[1].calls:
            if call["operation"] == "send" and call["peer"] == 0 and call["micro_batch"] == 0:
                call["start_ns"] -= 70 * MS

    with pytest.raises(Unavailable, match="fit no known schedule"):
        FOUR.run(swap).analyse("pipeline_blocks")


def test_marks_count_if_there_are_as_many_as_micro_batches() -> None:
    def run(leave_out: int) -> Run:
        made = Pipeline(stages=2, micro_batches=4, steps=2).run()
        frames = {}
        for one in made.ranks:
            tables = {
                name: one.table(name).collect().drop("rank") for name in ("ranks", "groups", "steps", "collectives")
            }
            passes = one.table("kernels").collect().sort("start_ns")[leave_out:]
            tables["slices"] = SLICES.frame(
                slice=range(passes.height),
                start_ns=passes["start_ns"],
                duration_ns=passes["duration_ns"] - 1,  # ranges that touch are one
                category=["annotation"] * passes.height,
                name=passes["name"],
            )
            frames[one.rank] = tables
        return Run.from_frames(frames)

    found = run(0).analyse("pipeline_blocks")

    assert found["known_by"].unique().to_list() == ["marks"]
    assert found.filter(rank=0, step=1, direction="forward")["micro_batch"].to_list() == [0, 1, 2, 3]
    assert run(1).analyse("pipeline_blocks")["known_by"].unique().to_list() == ["1F1B"]
