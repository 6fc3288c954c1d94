"""Python functions by their total, self and idle time."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import OPERATORS, RANKS, SLICES, STEPS

MS = 1_000_000

CALLS = [
    # category, name, start, end in ms, thread
    ("python", "train.py(10): main", 0, 100, "1"),
    ("python", "train.py(40): step", 0, 60, "1"),
    ("operator", "aten::mm", 10, 50, "1"),
    ("python", "train.py(70): write_log", 60, 95, "1"),
    ("python", "<built-in function sleep>", 62, 94, "1"),
    ("python", "queue.py(5): get", 0, 100, "2"),
    ("python", "<built-in method acquire of _thread.lock object at 0x7f01>", 0, 40, "2"),
    ("python", "<built-in method acquire of _thread.lock object at 0x7f99>", 50, 100, "2"),
]


def run_of(calls: list[tuple[str, str, int, int, str]]) -> Run:
    """A CPU-only rank with one step of 100 ms."""
    category, name, start, end, thread = zip(*calls, strict=True)
    times = {
        "start_ns": [s * MS for s in start],
        "duration_ns": [(e - s) * MS for s, e in zip(start, end, strict=True)],
    }
    slices = SLICES.frame(
        slice=list(range(len(calls))), category=list(category), name=list(name), thread=list(thread),
        depth=[2] * len(calls), **times,
    )  # fmt: skip
    ops = slices.filter(pl.col("category") == "operator")
    operators = OPERATORS.conform(ops.select("slice", "start_ns", "duration_ns", "name", "thread"))
    steps = STEPS.frame(
        step=[1], start_ns=[0], end_ns=[100 * MS], window_start_ns=[0], window_end_ns=[100 * MS], window=["host"]
    )
    return Run.from_frames({0: {"slices": slices, "operators": operators, "steps": steps}})


def of(frame: pl.DataFrame, function: str) -> dict[str, object]:
    (row,) = frame.filter(pl.col("function") == function).to_dicts()
    return row


def test_self_time_is_without_other_functions_and_operators() -> None:
    functions = run_of(CALLS).analyse("functions")

    step = of(functions, "step")
    assert (step["file"], step["line"], step["called_by"]) == ("train.py", 40, None)
    assert (step["calls"], step["total_ns"], step["self_ns"]) == (1, 60 * MS, 20 * MS)
    assert of(functions, "main")["self_ns"] == 5 * MS


def test_a_built_in_function_is_told_by_its_caller() -> None:
    sleep = of(run_of(CALLS).analyse("functions"), "<built-in function sleep>")

    assert (sleep["called_by"], sleep["self_ns"], sleep["idle_ns"]) == ("write_log (train.py:70)", 32 * MS, 32 * MS)


def test_objects_at_other_addresses_are_the_same_function() -> None:
    acquire = of(run_of(CALLS).analyse("functions"), "<built-in method acquire of _thread.lock object>")

    assert (acquire["calls"], acquire["total_ns"]) == (2, 90 * MS)


def test_idle_time_is_that_of_the_training_thread() -> None:
    run = run_of(CALLS)

    idle = run.analyse("idle_functions")
    free = run.analyse("idle").filter(pl.col("cause") == "python")

    assert idle["function"].to_list() == ["<built-in function sleep>", "step", "main", "write_log"]
    assert idle["idle_ns"].to_list() == [32 * MS, 20 * MS, 5 * MS, 3 * MS]
    assert idle["idle_ns"].sum() == free["idle_ns"].sum() == 60 * MS


def test_a_function_that_calls_itself_counts_once() -> None:
    calls = [("python", "a.py(1): f", 0, 100, "1"), ("python", "a.py(1): f", 20, 80, "1")]

    row = of(run_of([*calls, ("operator", "aten::mm", 30, 40, "1")]).analyse("functions"), "f")

    assert (row["calls"], row["total_ns"], row["self_ns"]) == (2, 100 * MS, 90 * MS)


def test_without_python_functions_the_remedy_is_named() -> None:
    with pytest.raises(Unavailable, match="--stacks"):
        run_of([call for call in CALLS if call[0] == "operator"]).analyse("functions")


@pytest.mark.parametrize(
    ("framework", "takes", "device", "reason"),
    [
        ("mindspore", False, "npu", "records none here"),
        ("mindspore", None, "cpu", "records none here"),
        ("mindspore", None, "npu", "--stacks"),
        ("pytorch", None, "cpu", "--stacks"),
        (None, None, None, "--stacks"),
    ],
)
def test_the_remedy_is_one_that_the_framework_has(
    framework: str | None, takes: bool | None, device: str | None, reason: str
) -> None:
    told = RANKS.frame(framework=[framework], takes_functions=[takes], device_kind=[device])
    slices = SLICES.frame(slice=[0], category=["operator"], name=["mm"], start_ns=[0], duration_ns=[MS])

    with pytest.raises(Unavailable, match=reason):
        Run.from_frames({0: {"slices": slices, "ranks": told}}).analyse("functions")


def test_a_recording_without_any_ranges_says_what_to_record() -> None:
    run = Run.from_frames({0: {"steps": STEPS.frame(step=[1], start_ns=[0], end_ns=[MS], window_start_ns=[0],
                                                    window_end_ns=[MS], window=["stated"])}})  # fmt: skip

    with pytest.raises(Unavailable, match="--stacks"):
        run.analyse("functions")
