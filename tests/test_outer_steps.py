"""What is special about the first and last recorded step is not said of the first and last that the user selects."""

from __future__ import annotations

import polars as pl

from stepscope.report.answers import answers
from stepscope.report.verdict import verdict
from stepscope.run import Run
from stepscope.tables import KERNELS, STEPS

MS = 1_000_000


def job(*lengths_ms: int) -> Run:
    """Steps from 1 whose device computes for 20 ms and then waits for the host to launch the next one's work."""
    lengths = [length * MS for length in lengths_ms]
    starts = [sum(lengths[:n]) for n in range(len(lengths))]
    ends = [start + length for start, length in zip(starts, lengths, strict=True)]
    numbers = list(range(1, len(lengths) + 1))
    steps = STEPS.frame(
        step=numbers, start_ns=starts, end_ns=ends, window_start_ns=starts, window_end_ns=ends,
        window=["device"] * len(lengths),
    )  # fmt: skip
    kernels = KERNELS.frame(
        kernel=numbers, step=numbers, kind=["compute"] * len(lengths), name=["k"] * len(lengths), start_ns=starts,
        duration_ns=[20 * MS] * len(lengths), device=[0] * len(lengths), stream=[7] * len(lengths),
        launch_start_ns=[start - 1 for start in starts], launch_end_ns=starts,
    )  # fmt: skip
    return Run.from_frames({0: {"steps": steps, "kernels": kernels}})


def counted(run: Run) -> int:
    """How many steps `lost_time` counts."""
    (steps,) = run.analyse("lost_time")["steps"].unique()
    return int(steps)


def test_first_and_last_of_a_selection_count_as_long_as_they_are_not_those_of_the_recording() -> None:
    run = job(*[100] * 8)

    assert counted(run) == 6
    assert counted(run.select(steps="3-5")) == 3
    assert counted(run.select(steps="1-5")) == 4
    assert counted(run.select(steps="5-8")) == 3
    assert [counted(run.select(steps=step)) for step in (1, 4, 8)] == [1, 1, 1]


def test_of_two_selected_steps_the_one_that_is_cut_is_left_out() -> None:
    lost = job(*[100] * 7, 30).select(steps="7-8").analyse("lost_time")

    assert lost["recorded_ns"].unique().to_list() == [100 * MS]


def test_a_long_step_that_is_the_first_selected_one_starts_nothing_up() -> None:
    run = job(100, 100, 100, 2000, 100, 100, 100, 100)

    chosen = answers(run.select(steps="4-8"))
    averages = run.select(steps="4-8").analyse("time_by_rank")

    assert "Step 4 takes 2.00 s, 20 times the median step (83% of the time)" in verdict(chosen)
    assert averages.select("steps", "window_ns", "left_out_step").rows() == [(5, 480 * MS, None)]


def test_a_long_first_step_is_still_one_that_starts_things_up() -> None:
    run = job(2000, *[100] * 7)

    assert "as the first one starts things up" in verdict(answers(run.select(steps="1-6")))
    assert run.select(steps="1-6").analyse("time_by_rank")["left_out_step"].to_list() == [1]


def test_outer_steps_are_those_of_each_rank() -> None:
    found = job(100, 50, 100).select(steps=2).analyse("outer_steps")

    assert found.rows() == [(0, 1, 0, 150 * MS)]
    assert found.schema["first_step"] == pl.Int32
