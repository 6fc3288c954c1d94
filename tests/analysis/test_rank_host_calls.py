"""What the extra host time of a rank consists of."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from stepscope.analysis.methods.own_time import own_times
from stepscope.run import Run
from stepscope.tables import SLICES, STEPS

US = 1000
MS = 1000 * US
STEP_NS = 200 * MS

Call = tuple[str, str, int, int]
"""Category, name, start in the step and duration."""


def host(*calls: Call, factor: float = 1.0, last: Sequence[Call] = (), steps: int = 3) -> dict[str, pl.DataFrame]:
    """A rank whose host launches four operators in each step, and makes some calls; in the last step, more of them."""
    rows: list[dict[str, object]] = []
    for step in range(steps):
        usual = [("operator", f"aten::op{k}", 2 * MS * k, round(100 * US * factor)) for k in range(4)]
        more = last if step == steps - 1 else ()
        inside = [("annotation", f"ProfilerStep#{step}", 0, STEP_NS), *usual, *calls, *more]
        rows += [
            {"start_ns": step * STEP_NS + start, "duration_ns": length, "category": category, "name": name,
             "thread": "1", "step": step}
            for category, name, start, length in inside
        ]  # fmt: skip
    times = {"start_ns": [k * STEP_NS for k in range(steps)], "end_ns": [(k + 1) * STEP_NS for k in range(steps)]}
    marked = STEPS.frame(
        step=list(range(steps)),
        **times,
        **{f"window_{name}": times[name] for name in times},
        window=["host"] * steps,
    )
    return {"slices": SLICES.conform(pl.DataFrame(rows).with_row_index("slice")), "steps": marked}


def pattern(slow: dict[str, pl.DataFrame]) -> dict[str, object]:
    """What rank 2 of four does that the others do not."""
    run = Run.from_frames({rank: slow if rank == 2 else host() for rank in range(4)})
    return run.analyse("host_patterns").row(2, named=True)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (("gc", "GC", 20 * MS, 30 * MS), "garbage_collection"),
        (("runtime", "AscendCL@aclopCompileAndExecute", 20 * MS, 30 * MS), "compile"),
        (("runtime", "cudaFree", 20 * MS, 30 * MS), "device_memory"),
        (("runtime", "cudaDeviceSynchronize", 20 * MS, 30 * MS), "synchronisation"),
        (("annotation", "checkpoint: torch.save", 20 * MS, 30 * MS), "checkpoint"),
        (("python", "logging/__init__.py(1553): info", 20 * MS, 30 * MS), "logging"),
        (("python", "train.py(12): crop", 20 * MS, 30 * MS), "python"),
    ],
)
def test_the_calls_that_take_the_time_are_named(call, what) -> None:
    found = pattern(host(call))

    assert (found["pattern"], found["what"], found["named_ns"]) == ("calls", what, 30 * MS)
    assert found["names"] == [call[1].removeprefix("AscendCL@")]


def test_a_host_on_which_every_call_takes_longer_is_slow_itself() -> None:
    found = pattern(host(factor=4.0))

    assert (found["pattern"], found["names"], found["named_ns"]) == ("every_call", [], 1_200 * US)
    assert found["factor"] == pytest.approx(4.0)


def test_one_long_call_is_a_stall_with_its_step_and_function() -> None:
    crop = ("python", "train.py(12): crop", 20 * MS, 61 * MS)
    sleep = ("python", "<built-in function sleep>", 20 * MS, 60 * MS)

    found = pattern(host(last=[crop, sleep]))

    assert (found["pattern"], found["names"], found["longest_step"]) == ("stall", ["<built-in function sleep>"], 2)
    assert (found["place"], found["longest_ns"]) == ("train.py(12): crop", 60 * MS)


def test_an_unrecorded_stall_is_time_outside_of_recorded_calls() -> None:
    busy = ("operator", "aten::copy_", 20 * MS, 170 * MS)
    run = Run.from_frames({rank: host(*([busy] if rank != 2 else [])) for rank in range(4)})

    found = run.analyse("host_patterns").row(2, named=True)

    assert (found["what"], found["names"], found["named_ns"]) == ("outside", ["ProfilerStep"], 170 * MS)


def test_what_a_checkpoint_does_is_part_of_it_and_waiting_as_often_as_others_is_no_cause() -> None:
    save = ("python", "torch/serialization.py(850): save", 20 * MS, 30 * MS)
    copy = ("operator", "aten::copy_", 25 * MS, 20 * MS)
    wait = ("runtime", "cudaStreamSynchronize", 100 * MS, 50 * MS)
    short = ("runtime", "cudaStreamSynchronize", 100 * MS, 1 * MS)
    run = Run.from_frames({rank: host(save, copy, wait) if rank == 2 else host(short) for rank in range(4)})

    found = run.analyse("host_patterns").row(2, named=True)

    assert (found["what"], found["named_ns"]) == ("checkpoint", 30 * MS)


def test_time_beyond_the_end_of_a_parent_is_taken_from_what_goes_on() -> None:
    ranges = pl.DataFrame({"start_ns": [0, 10, 15], "duration_ns": [100, 10, 40], "thread": [0, 0, 0]})

    own, parent = own_times(ranges)

    assert own.to_list() == [100 - 45, 5, 40]
    assert parent.to_list() == [None, 0, 1]
