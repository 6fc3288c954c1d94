"""The steps, FLOPs and memory of all ranks side by side."""

from __future__ import annotations

import polars as pl
import pytest
from rank_tables import MS, figures, job, steps, totals, who

from builders import make_run
from stepscope.errors import Unavailable
from stepscope.pages.answering import answer, document
from stepscope.pages.ranks import PAGE as RANKS_PAGE
from stepscope.run import Run


def test_steps_have_their_points_their_parts_and_the_stage_of_their_rank() -> None:
    rows = job().analyse("rank_steps")

    assert rows.height == 12
    one = rows.filter(rank=2, step=2).row(0, named=True)
    assert (one["stage"], one["step_ns"], one["interval_ns"], one["tail_ns"]) == (1, 100 * MS, 2 * MS, 8 * MS)
    assert (one["computing_and_free_ns"], one["receiving_ns"], one["computing_ns"]) == (60 * MS, 5 * MS, None)
    assert one["parts_by"] == "stated"


def test_the_first_step_is_left_out_of_the_mean_where_its_interval_was_not_measured() -> None:
    rows = job().analyse("rank_means")

    assert rows["steps"].to_list() == [2] * 4
    assert rows["interval_ns"].to_list() == [MS, MS, 2 * MS, MS]
    assert rows["receiving_ns"].to_list() == [50 * MS, 50 * MS, 5 * MS, 5 * MS]


def test_stages_of_ranks_and_of_pipelines_leave_out_the_same_first_steps() -> None:
    run = job()

    assert run.analyse("left_out_steps").rows() == [(rank, 1, "unmeasured") for rank in range(4)]
    assert run.analyse("pipeline_stages")["left_out"].to_list() == [2, 2]
    assert run.analyse("pipeline_stages")["recorded_bubble_ns"].to_list() == [50 * MS, 5 * MS]
    assert run.analyse("stage_means")["receiving_ns"].to_list() == [50 * MS, 5 * MS]


def test_chosen_steps_are_averaged_with_the_first() -> None:
    rows = job().select(steps="1").analyse("rank_means")

    assert rows["interval_ns"].to_list() == [0] * 4
    assert rows["receiving_ns"].to_list() == [1050 * MS, 1050 * MS, 1005 * MS, 1005 * MS]


def test_stages_are_averaged_over_their_ranks_and_can_be_chosen() -> None:
    rows = job().analyse("stage_means")

    assert rows.select("stage", "ranks", "interval_ns").rows() == [(0, "0, 1", MS), (1, "2, 3", 1_500_000)]
    assert job().analyse("stage_means", stage="1")["ranks"].to_list() == ["2, 3"]
    assert job().analyse("rank_means", stage="0")["rank"].to_list() == [0, 1]


def test_chosen_ranks_keep_the_stage_that_all_ranks_tell() -> None:
    rows = job().select(ranks=3).analyse("rank_means")

    assert rows.select("rank", "stage").rows() == [(3, 1)]


def test_means_that_the_source_states_of_more_steps_stand_beside_those_of_the_steps() -> None:
    run = job(rank_figures={rank: figures(average_interval_ns=3 * MS) for rank in (0, 1)})

    rows = run.analyse("rank_means")

    assert rows["split"].to_list() == ["steps"] * 4 + ["stated"] * 2
    assert rows.filter(split="stated").select("rank", "interval_ns", "steps").rows() == [
        (0, 3 * MS, None),
        (1, 3 * MS, None),
    ]
    assert run.select(steps="2-3").analyse("rank_means")["split"].to_list() == ["steps"] * 4


def test_parts_that_some_steps_have_say_of_how_many_they_are_means() -> None:
    run = job(step_totals={rank: totals(rank).filter(pl.col("step") < 3) for rank in range(4)})

    rows = run.analyse("rank_means")
    assert rows.select("steps", "parts_steps").unique().rows() == [(2, 1)]
    (note,) = [note for note in document(answer(run, RANKS_PAGE))["notes"] if "parts" in note]
    assert note.startswith("What ranks 0-3 do was recorded in some steps only")
    assert "means of 1 of 2 (rank 0)" in note


def test_a_timeline_tells_the_parts_where_no_step_table_does() -> None:
    rows = make_run(late={1: 10 * MS}).analyse("rank_means")

    late, other = rows.filter(rank=1).row(0, named=True), rows.filter(rank=0).row(0, named=True)
    assert (late["computing_ns"], other["computing_ns"]) == (70 * MS, 60 * MS)
    assert (late["communication_not_overlapped_ns"], other["communication_not_overlapped_ns"]) == (20 * MS, 30 * MS)
    assert late["free_ns"] + late["computing_ns"] + 20 * MS == late["step_ns"]
    assert rows["receiving_ns"].null_count() == rows.height
    with pytest.raises(Unavailable, match="stages"):
        make_run().analyse("stage_means")


def test_a_rank_without_a_step_table_hides_nothing_of_the_others() -> None:
    frames = {rank: {"ranks": who(rank), "steps": steps(rank)} for rank in (0, 1)}

    rows = Run.from_frames(frames).analyse("rank_means")

    assert rows["interval_ns"].to_list() == [MS, MS]
    assert rows["communication_not_overlapped_ns"].to_list() == [None, None]


def test_flops_are_shares_of_those_of_the_rank_with_the_most() -> None:
    flops = {0: 25e9, 1: 50e9, 2: 100e9, 3: 100e9}
    run = job(rank_figures={rank: figures(flops=value, flops_per_s=value * 10) for rank, value in flops.items()})

    rows = run.analyse("rank_flops")

    assert rows["of_most_ratio"].to_list() == [0.25, 0.5, 1, 1]
    assert rows["stage"].to_list() == [0, 0, 1, 1]


def test_memory_is_a_share_of_the_capacity_and_of_the_rank_with_the_most() -> None:
    peaks = {0: 2e9, 1: 8e9, 2: 4e9, 3: 4e9}
    stated = {r: figures(memory_peak_bytes=peak, memory_capacity_bytes=16e9) for r, peak in peaks.items()}

    rows = job(rank_figures=stated).analyse("rank_memory")

    assert rows["used_ratio"].to_list() == [0.125, 0.5, 0.25, 0.25]
    assert rows["of_most_ratio"].to_list() == [0.25, 1, 0.5, 0.5]
