"""The tree of calls: what runs in what, and the device work below what launched it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from builders import EPOCH_NS
from stepscope.errors import StepscopeError, Unavailable
from stepscope.run import Run
from stepscope.tables import FLOWS, KERNELS, OPERATORS, RANKS, SLICES, STACKS

# start, length, category, name, thread
CALLS = (
    (0, 100, "python", "train.py(9): main", "1"),
    (9, 2, "python", "<built-in method enter of object at 0x7f>", "1"),
    (10, 60, "annotation", "ProfilerStep#1", "1"),  # begins in a function that is soon over
    (20, 40, "python", "nn.Module: Net_0", "1"),
    (25, 30, "operator", "aten::mm", "1"),
    (30, 5, "runtime", "cudaLaunchKernel", "1"),
    (75, 20, "annotation", "ProfilerStep#2", "1"),
    (80, 10, "operator", "aten::mm", "1"),
    (40, 20, "operator", "MmBackward0", "2"),
)


def _run(calls: tuple[tuple[int, int, str, str, str], ...] = CALLS, **more: pl.DataFrame) -> Run:
    starts, lengths, categories, names, threads = zip(*calls, strict=True)
    frame = {
        "slice": range(len(calls)),
        "start_ns": [EPOCH_NS + start for start in starts],
        "duration_ns": lengths,
        "category": categories,
        "name": names,
        "thread": threads,
    }
    slices = SLICES.frame(**frame, correlation=[7 if name == "cudaLaunchKernel" else None for name in names])
    slices = slices.with_columns(parent=pl.when(pl.col("slice") == 5).then(4), process=pl.lit("1"))
    known = slices.filter(pl.col("category") == "operator")
    operators = OPERATORS.frame(
        slice=known["slice"], start_ns=known["start_ns"], duration_ns=known["duration_ns"], name=known["name"]
    ).with_columns(known["thread"])
    return Run.from_frames(
        {0: {"ranks": RANKS.frame(world_size=[1]), "slices": slices, "operators": operators, **more}}
    )


def _paths(run: Run, **options: Any) -> dict[str, tuple[int, int, int, int]]:
    """Calls, host time, own and device time of each path."""
    found: dict[str, tuple[int, int, int, int]] = {}
    names: list[str] = []
    columns = ("depth", "name", "calls", "host_ns", "host_self_ns", "device_ns")
    for depth, name, *figures in run.analyse("call_tree", **options).select(columns).iter_rows():
        names[depth:] = [name]
        found[" ".join(names)] = tuple(figures)
    return found


def test_calls_belong_into_the_calls_around_them() -> None:
    found = _paths(_run(), by="operator")

    assert found == {
        "thread 1": (0, 80, 0, 0),
        "thread 1 ProfilerStep": (2, 80, 40, 0),
        "thread 1 ProfilerStep aten::mm": (2, 40, 35, 0),
        "thread 1 ProfilerStep aten::mm cudaLaunchKernel": (1, 5, 5, 0),
        "thread 2": (0, 20, 0, 0),
        "thread 2 MmBackward0": (1, 20, 20, 0),
    }


def test_a_mark_outlives_the_function_that_makes_it() -> None:
    found = _paths(_run())

    main, step = "thread 1 train.py(9): main", "thread 1 train.py(9): main ProfilerStep"
    assert found[main] == (1, 100, 19, 0)  # 100 less both steps, and what began the first
    assert found[step] == (2, 80, 30, 0)  # less the module, and the operator of the second step
    assert found[f"{step} Net_0 aten::mm"][:2] == (1, 30)
    assert found[f"{main} <built-in enter>"] == (1, 1, 1, 0)
    assert sum(own for _, _, own, _ in found.values()) == 120


def test_device_work_is_below_what_launched_it() -> None:
    kernels = KERNELS.frame(
        kernel=[0, 1],
        start_ns=[EPOCH_NS + 50] * 2,
        duration_ns=[300, 11],
        kind=["compute"] * 2,
        name=["gemm", "stray"],
        correlation=[7, None],
    )
    found = _paths(_run(kernels=kernels), by="module")

    assert found["thread 1 ProfilerStep Net_0 aten::mm gemm"] == (1, 0, 0, 300)
    assert found["thread 1"][3] == 300
    assert found["launched by unknown calls stray"] == (1, 0, 0, 11)


def test_the_backward_pass_stands_in_the_module_of_its_forward_pass() -> None:
    flows = FLOWS.frame(
        flow=[0],
        kind=["forward_backward"],
        from_ns=[EPOCH_NS + 25],
        from_thread=["1"],
        to_ns=[EPOCH_NS + 40],
        to_thread=["2"],
    )
    found = _paths(_run(flows=flows), by="module")

    assert found["thread 2 Net_0 backward MmBackward0"] == (1, 20, 20, 0)


def test_stacks_of_operators_take_the_place_of_functions() -> None:
    calls = ((0, 10, "operator", "aten::mm", "1"), (20, 5, "operator", "aten::mm", "1"))
    run = _run(calls)
    operators = run.table("operators").collect().with_columns(stack=pl.lit(3, pl.Int64)).drop("rank")
    stacks = STACKS.frame(stack=[3], text=["model.py(4): forward\ntrain.py(9): main"])
    found = _paths(_run(calls, operators=operators, stacks=stacks))

    assert found["thread 1 train.py(9): main model.py(4): forward aten::mm"] == (2, 15, 15, 0)


def test_what_was_not_recorded_is_said() -> None:
    operators = ((0, 10, "operator", "aten::mm", "1"),)
    for by, why in (("python", "no Python functions"), ("module", "no modules")):
        with pytest.raises(Unavailable, match=why):
            _run(operators).analyse("call_tree", by=by)
    with pytest.raises(Unavailable, match="no calls of the host"):
        _run(((0, 10, "kernel", "gemm", "1"),)).analyse("call_tree")
    with pytest.raises(StepscopeError, match="--by class: choose one of python, module, operator"):
        _run().analyse("call_tree", by="class")
