"""Iterations of recordings that mark no steps: found where repetition is certain, else totals of the recording."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from stepscope.advice import advise, worded
from stepscope.errors import StepscopeError, Unavailable
from stepscope.report.answers import answers
from stepscope.report.verdict import verdict
from stepscope.run import Run
from stepscope.tables import KERNELS, OPERATORS, SLICES, STEPS

US = 1000

STEP = ["aten::conv2d", "aten::relu", "aten::mm", "aten::nll_loss", "MmBackward0", "ConvolutionBackward0"]
LAYER = ["aten::layer_norm", "aten::linear", "aten::softmax", "aten::linear", "aten::add"]

Tables = dict[str, pl.DataFrame]


def recorded(names: Sequence[str], threads: Sequence[str] = (), *, shapes: str | None = None) -> Tables:
    """Operators one after the other, 10 us each and 20 us apart, in a recording that marks no steps."""
    end = len(names) * 20 * US
    operators = OPERATORS.frame(
        slice=list(range(len(names))),
        name=list(names),
        thread=list(threads) or ["1"] * len(names),
        start_ns=[n * 20 * US for n in range(len(names))],
        duration_ns=[10 * US] * len(names),
        input_shapes=[shapes if name == "aten::mm" else None for name in names],
        step=[0] * len(names),
    )
    return {"operators": operators, "steps": one_window(0, end)}


def one_window(start_ns: int, end_ns: int) -> pl.DataFrame:
    """The row of `steps` of a recording that marks none."""
    bounds = {"start_ns": [start_ns], "end_ns": [end_ns], "window_start_ns": [start_ns], "window_end_ns": [end_ns]}
    return STEPS.frame(step=[0], window=["recording"], **bounds)


def lengths(tables: Tables) -> list[tuple[int, int]]:
    """Start (in operators) and number of operators of each iteration that is found."""
    found = Run.from_frames({0: tables}).analyse("iterations")
    return [(start // (20 * US), count) for start, count in found.select("start_ns", "operators").iter_rows()]


def test_a_loop_of_the_same_operators_is_that_many_iterations() -> None:
    assert lengths(recorded(STEP * 4)) == [(0, 6), (6, 6), (12, 6), (18, 6)]


def test_what_comes_before_and_after_the_loop_is_no_iteration() -> None:
    tables = recorded(["aten::empty", *STEP * 10, "aten::item", "aten::copy_"])

    assert lengths(tables) == [(1 + 6 * n, 6) for n in range(10)]


def test_operators_inside_others_and_on_other_threads_do_not_count() -> None:
    once = ["aten::conv2d", "aten::convolution", "aten::mm", "MmBackward0"]
    tables = recorded(once * 5, ["1", "1", "1", "2"] * 5)
    inner = pl.col("name") == "aten::convolution"
    shifted = tables["operators"].with_columns(start_ns=pl.col("start_ns") - pl.when(inner).then(15 * US).otherwise(0))
    nested = shifted.with_columns(duration_ns=pl.when(inner).then(2 * US).otherwise("duration_ns"))

    assert [count for _, count in lengths({**tables, "operators": nested})] == [2] * 5


def test_a_first_iteration_that_builds_things_and_one_that_logs_are_iterations() -> None:
    long = [f"aten::op{n}" for n in range(20)] + STEP
    names = [*long[:3], "aten::zeros_like", "aten::zeros_like", *long[3:], *long * 3, *long, "aten::item", *long * 2]

    assert [count for _, count in lengths(recorded(names))] == [26] * 7


@pytest.mark.parametrize(
    "names",
    [
        STEP * 2,  # two alike may be chance
        LAYER * 24,  # layers of a model repeat as well
        ["aten::embedding", *LAYER * 24, "aten::nll_loss", *["LinearBackward0", "AddBackward0"] * 24],
        [*STEP, *STEP[:3], *STEP, "aten::sort", "aten::topk", *STEP[2:], *STEP[::2]],  # not alike
        [*STEP[:4] * 4, "aten::eq"],  # nothing of an iteration of training
        ["aten::copy_"] * 40,
    ],
)
def test_nothing_is_found_where_it_is_not_certain(names: list[str]) -> None:
    run = Run.from_frames({0: recorded(names)})

    with pytest.raises(Unavailable, match="repeats"):
        run.analyse("iterations")
    assert run.analyse("breakdown")["window"].to_list() == ["recording"]


def test_micro_batches_are_no_iterations_where_the_optimizer_runs_once_in_four() -> None:
    names = [*[*STEP * 4, "aten::mul_", "aten::add_"] * 3]
    tables = recorded(names)
    ends = [(n + 1) * 26 * 20 * US for n in range(3)]
    updates = SLICES.frame(
        category=["annotation"] * 3,
        name=["Optimizer.step#SGD.step"] * 3,
        start_ns=[end - 40 * US for end in ends],
        duration_ns=[30 * US] * 3,
        slice=[1000, 1001, 1002],
    )

    assert [count for _, count in lengths({**tables, "slices": updates})] == [26] * 3


def test_a_recording_that_marks_steps_has_those() -> None:
    marked = recorded(STEP * 4)["steps"].with_columns(window=pl.lit("host"), step=pl.lit(7, pl.Int32))

    with pytest.raises(Unavailable, match="marks its steps"):
        Run.from_frames({0: {**recorded(STEP * 4), "steps": marked}}).analyse("iterations")


def test_answers_are_by_iteration_and_can_be_narrowed_to_some() -> None:
    run = Run.from_frames({0: recorded(STEP * 4, shapes="[[2, 3], [3, 4]]")})

    trace = run.analyse("step_trace")
    model = run.analyse("model_flops").row(0, named=True)

    assert trace.select("step", "window", "step_ns").rows()[:3] == [(n, "repetition", 120 * US) for n in (1, 2, 3)]
    assert trace["forward_ns"].to_list() == [80 * US] * 4
    assert (model["steps"], model["step_flops"], model["recorded_flops"]) == (4, 48.0, 192.0)
    assert run.steps == [1, 2, 3, 4]
    assert run.select(steps="2-3").analyse("breakdown")["step"].to_list() == [2, 3]
    assert run.select(steps="2-3").select(steps="3-4").steps == [3]
    assert run.table("steps").collect()["window"].to_list() == ["recording"]
    with pytest.raises(StepscopeError, match="It has steps 1-4"):
        run.select(steps=9)


def test_the_windows_of_iterations_on_a_device_are_those_of_their_kernels() -> None:
    tables = recorded(STEP * 3)
    launches = [(6 * n * 20 + 5) * US for n in range(3)]
    kernels = KERNELS.frame(
        kernel=[0, 1, 2],
        name=["gemm"] * 3,
        kind=["compute"] * 3,
        start_ns=[at + 300 * US for at in launches],
        duration_ns=[50 * US] * 3,
        launch_start_ns=launches,
        launch_end_ns=launches,
        step=[0] * 3,
    )

    found = Run.from_frames({0: {**tables, "kernels": kernels}}).analyse("breakdown")

    assert found["window_ns"].to_list() == [120 * US, 120 * US, 50 * US]
    assert found["computing_ns"].to_list() == [50 * US] * 3


def test_what_was_launched_before_the_recording_is_of_no_iteration() -> None:
    """A device that is 200 us behind its host first runs kernels whose launches were not recorded."""
    launches = [n * 120 * US for n in range(4)]
    starts = [-20 * US, 80 * US, *(at + 200 * US for at in launches)]
    kernels = KERNELS.frame(
        kernel=range(6), name=["k"] * 6, kind=["compute"] * 6, stream=[7] * 6, start_ns=starts,
        duration_ns=[90 * US] * 6, launch_start_ns=[None, None, *launches], step=[0] * 6,
    )  # fmt: skip
    run = Run.from_frames({0: {**recorded(STEP * 4), "kernels": kernels}})

    split = run.analyse("breakdown").select("step", "window_start_ns", "window_ns", "computing_ns")

    windows = [(number, at + 200 * US, 120 * US, 90 * US) for number, at in enumerate(launches, start=1)]
    assert split.rows() == [*windows[:3], (4, 560 * US, 90 * US, 90 * US)]


def test_ranks_that_find_other_numbers_of_iterations_have_none() -> None:
    same = Run.from_frames({0: recorded(STEP * 4), 1: recorded(STEP * 4)})
    other = Run.from_frames({0: recorded(STEP * 4), 1: recorded(STEP * 5)})

    assert same.iterations is not None
    assert other.iterations is None
    assert set(other.analyse("breakdown")["window"]) == {"recording"}


def test_a_recording_without_iterations_has_totals_and_no_phases() -> None:
    run = Run.from_frames({0: recorded(STEP * 2, shapes="[[2, 3], [3, 4]]")})

    trace = run.analyse("step_trace").row(0, named=True)
    model = run.analyse("model_flops").row(0, named=True)

    assert {trace[name] for name in ("forward_ns", "backward_ns", "interval_ns", "forward_backward_ns")} == {None}
    assert (model["steps"], model["step_ns"], model["step_flops"], model["recorded_flops"]) == (None, None, None, 96.0)
    with pytest.raises(Unavailable, match="marks no steps"):
        run.analyse("step_statistics")


@pytest.mark.parametrize(
    ("names", "told", "per"),
    [
        (
            STEP * 4,
            "4 iterations found by repetition of 6 operators. The average iteration takes 117.5 us (median 120.0 us)",
            "iteration",
        ),
        (STEP * 2, "times are of the whole recording. The work in the recording spans 240.0 us", "recording"),
    ],
)
def test_the_verdict_and_savings_say_what_they_are_of(names: list[str], told: str, per: str) -> None:
    tables = recorded(names)
    idle = tables["operators"].with_columns(pl.col("start_ns") + 1, name=pl.lit("Python"), slice=pl.col("slice") + 500)
    frames = SLICES.frame(
        slice=idle["slice"],
        category=["annotation"] * idle.height,
        name=["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] * idle.height,
        start_ns=[n * 20 * US + 10 * US for n in range(idle.height)],
        duration_ns=[9 * US] * idle.height,
    )
    run = Run.from_frames({0: {**tables, "slices": frames}})

    assert told in verdict(answers(run))
    (finding,) = [one for one in advise(run) if one.rule == "idle-time"]
    assert finding.per == per
    assert finding.per in ("iteration", "recording")
    assert " step" not in worded(finding).summary
