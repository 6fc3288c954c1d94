"""What is said of a step is the same whether the user selects some steps or none."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.report.answers import answers
from stepscope.report.verdict import verdict
from stepscope.run import Run
from stepscope.tables import COLLECTIVES, INPUT_PIPELINE, KERNELS, OPERATORS, SLICES, STEPS

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


def test_what_a_step_waits_for_at_its_end_is_known_if_the_next_one_is_not_selected() -> None:
    run = job(*[100] * 6)

    chosen = run.select(steps="2,4").analyse("idle")

    assert chosen.select("step", "cause", "idle_ns").rows() == [(2, "dispatch", 80 * MS), (4, "dispatch", 80 * MS)]
    assert chosen.equals(run.analyse("idle").filter(pl.col("step").is_in([2, 4])))


def test_work_outside_of_all_steps_ends_a_gap_also_if_a_step_is_selected() -> None:
    run = job(100, 100)
    tables = {name: run.rank(0).table(name).collect() for name in ("steps", "kernels")}
    unknown = KERNELS.frame(
        kernel=[9],
        step=[None],
        kind=["compute"],
        name=["k"],
        start_ns=[50 * MS],
        duration_ns=[MS],
        device=[0],
        stream=[7],
    )
    run = Run.from_frames({0: {**tables, "kernels": pl.concat([tables["kernels"].drop("rank"), unknown])}})

    whole = run.analyse("idle")

    assert whole.rows() == [(0, 1, "dispatch", 49 * MS, 1), (0, 1, "other", 30 * MS, 1), (0, 2, "other", 80 * MS, 1)]
    for step in (1, 2):
        assert run.select(steps=step).analyse("idle").equals(whole.filter(pl.col("step") == step))


def test_calls_and_batches_of_a_selected_step_keep_their_places() -> None:
    calls = COLLECTIVES.frame(
        collective=range(6), sequence=range(6), step=[1, 1, 2, 2, 3, 3], operation=["all_reduce"] * 6,
        name=[f"hcom_{n}" for n in range(6)], on_device=[True] * 6, stream=[1] * 6,
        start_ns=[n * 50 * MS for n in range(6)], duration_ns=[MS] * 6,
    )  # fmt: skip
    taken = INPUT_PIPELINE.frame(
        operator=["get_next"] * 4, batch=[7, 8, 9, 10], step=[1, 2, 2, 3], time_ns=range(4), duration_ns=[1] * 4
    )
    tables = {name: job(100, 100, 100).rank(0).table(name).collect() for name in ("steps", "kernels")}
    run = Run.from_frames({0: {**tables, "collectives": calls, "input_pipeline": taken}})

    for question, column, found in (("step_reduces", "place", [0, 1]), ("input_batches", "number", [2, 3])):
        whole = run.analyse(question)
        chosen = run.select(steps=2).analyse(question)
        assert chosen.equals(whole.filter(pl.col("step") == 2))
        assert chosen[column].drop_nulls().to_list() == found


def overlapping() -> Run:
    """Steps of 100 ms: copies of one run on in the next one's window, whose batch is loaded in the window before."""
    numbers, starts = range(1, 6), [step * 100 * MS for step in range(5)]
    late = [start + 30 * MS for start in starts]
    steps = STEPS.frame(
        step=numbers, start_ns=starts, end_ns=[start + 100 * MS for start in starts], window_start_ns=late,
        window_end_ns=[start + 100 * MS for start in late], window=["device"] * 5,
    )  # fmt: skip
    kernels = KERNELS.frame(
        kernel=range(10), step=[*numbers, *numbers],
        kind=["compute"] * 5 + ["memory"] * 5, name=["k"] * 5 + ["copy"] * 5,
        start_ns=late + [start + 80 * MS for start in late], duration_ns=[20 * MS] * 5 + [30 * MS] * 5,
        device=[0] * 10, stream=[7] * 5 + [8] * 5,
        launch_start_ns=[start - 1 for start in late] + [start + 20 * MS for start in late],
        launch_end_ns=late + [start + 21 * MS for start in late],
    )  # fmt: skip
    slices = SLICES.frame(
        slice=range(10), step=[*numbers, *numbers], category=["annotation"] * 10, depth=[1] * 10,
        name=["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] * 5 + ["## backward ##"] * 5,
        start_ns=starts + [start + 29 * MS for start in starts], duration_ns=[25 * MS] * 5 + [40 * MS] * 5,
    )  # fmt: skip
    return Run.from_frames({0: {"steps": steps, "kernels": kernels, "slices": slices}})


@pytest.mark.parametrize("question", ["breakdown", "idle", "step_trace", "loader_steps"])
def test_what_is_said_of_a_step_is_the_same_if_it_is_selected(question: str) -> None:
    run = overlapping()
    whole = run.analyse(question)

    assert whole.height >= 5
    for step in run.steps:
        assert run.select(steps=step).analyse(question).equals(whole.filter(pl.col("step") == step))


def test_what_is_compiled_in_steps_that_are_not_selected_does_not_count() -> None:
    starts = [step * 100 * MS for step in range(4)]
    ends = [start + 90 * MS for start in starts]
    compiled = [starts[0], ends[0], starts[1], starts[3]]  # the second one between two steps
    run = Run.from_frames(
        {
            0: {
                "steps": STEPS.frame(
                    step=range(1, 5), start_ns=starts, end_ns=ends, window_start_ns=starts, window_end_ns=ends,
                    window=["host"] * 4,
                ),
                "operators": OPERATORS.frame(
                    slice=range(4), step=range(1, 5), name=["aten::mm"] * 4, start_ns=starts, duration_ns=[90 * MS] * 4
                ),
                "slices": SLICES.frame(
                    slice=range(10, 14), step=[1, None, 2, 4], category=["compile"] * 4, name=["compile"] * 4,
                    start_ns=compiled, duration_ns=[8 * MS, 4 * MS, 2 * MS, MS],
                ),
            }
        }
    )  # fmt: skip

    def known(run: Run) -> list[tuple[object, ...]]:
        return run.analyse("compile_time").select("step", pl.col("compile_ns") // MS).rows()

    assert known(run) == [(1, 8), (None, 4), (2, 2), (4, 1)]
    assert known(run.select(steps="1-2")) == [(1, 8), (2, 2)]
    assert known(run.select(steps="1-4")) == known(run)
