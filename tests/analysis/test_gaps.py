"""What the host did in gaps of the device, and what ended them."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from stepscope.analysis.step.recurring_gaps import Limits
from stepscope.run import Run
from stepscope.tables import KERNELS, OPERATORS, RANKS, SLICES, STEPS, SYNCHRONIZATIONS
from tests.advice.test_lost_time_rules import every, on_cpu

MS = 1_000_000
Span = tuple[str, str, float, float]
"""Category, name, start and end in ms."""


def run(*host: Span, launched: float = 29.0, launcher: str = "1", rank: int = 0, **tables: pl.DataFrame) -> Run:
    """A kernel until 10 ms, a gap of 20 ms, and a kernel until 40 ms, with host ranges on thread 1 (on thread 2 if the
    name ends in `@2`).

    Args:
        host: The ranges, outer ones first.
        launched: When the launch of the second kernel ends.
        launcher: The thread that launches it.
        rank: Number of the rank.
        tables: More tables.
    """
    launch: Span = ("runtime", "cudaLaunchKernel", launched - 1, launched)
    spans = [*host, launch]
    threads = ["2" if name.endswith("@2") else "1" for _, name, *_ in host] + [launcher]
    slices = SLICES.frame(
        slice=range(len(spans)),
        start_ns=[round(start * MS) for *_, start, _ in spans],
        duration_ns=[round((end - start) * MS) for *_, start, end in spans],
        category=[category for category, *_ in spans],
        name=[name.removesuffix("@2") for _, name, *_ in spans],
        thread=threads,
        depth=[2] * len(spans),
        correlation=[None] * len(host) + [7],
        step=[1] * len(spans),
    )
    called = slices.filter(pl.col("category") == "operator")
    frames = {
        "ranks": RANKS.frame(device_kind=["cuda"]),
        "steps": STEPS.frame(
            step=[1], start_ns=[0], end_ns=[40 * MS], window_start_ns=[0], window_end_ns=[40 * MS], window=["device"]
        ),
        "slices": slices,
        "operators": OPERATORS.conform(called.select("slice", "start_ns", "duration_ns", "name", "thread", "step")),
        "kernels": KERNELS.frame(
            kernel=[0, 1], start_ns=[0, 30 * MS], duration_ns=[10 * MS, 10 * MS], kind=["compute"] * 2, stream=[7, 20],
            name=["first", "second"], correlation=[6, 7], step=[1, 1],
            launch_start_ns=[-MS, round(launched * MS) - MS], launch_end_ns=[-MS, round(launched * MS)],
        ),
        **tables,
    }  # fmt: skip
    return Run.from_frames({rank: frames})


def gap(run: Run) -> dict[str, Any]:
    (row,) = run.analyse("gaps").rows(named=True)
    return row


def test_a_gap_has_its_neighbours_and_the_launch_that_ended_it() -> None:
    found = gap(run())

    assert (found["start_ns"], found["duration_ns"], found["step"]) == (10 * MS, 20 * MS, 1)
    assert (found["before_name"], found["next_name"], found["next_stream"]) == ("first", "second", 20)
    assert (found["cause"], found["launched"], found["ahead_ns"]) == ("dispatch", "in", MS)
    assert (found["layer"], found["during"]) == ("nothing recorded", None)


def test_work_that_was_launched_before_the_gap_is_a_dependency() -> None:
    found = gap(run(launched=5.0))

    assert (found["cause"], found["launched"], found["ahead_ns"]) == ("dependency", "before", 25 * MS)


@pytest.mark.parametrize(
    ("category", "name", "layer"),
    [
        ("operator", "aten::embedding", "framework"),
        ("python", "train.py(40): log", "python"),
        ("runtime", "cudaMalloc", "runtime"),
        ("runtime", "AscendCL@aclrtSynchronizeStream", "runtime"),
        ("runtime", "cuModuleLoadData", "driver"),
        ("annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "data loader"),
        ("annotation", "checkpoint: torch.save", "checkpoint"),
        ("gc", "generation 2", "garbage collection"),
        ("compile", "entire_frame_compile", "compiler"),
        ("annotation", "my phase", "nothing recorded"),
        ("annotation", "ProfilerStep#1", "nothing recorded"),
    ],
)
def test_the_layer_is_that_of_what_the_host_did(category: str, name: str, layer: str) -> None:
    found = gap(run((category, name, 11, 28)))

    assert found["layer"] == layer
    assert found["during"] == (None if "ProfilerStep" in name else name.removeprefix("AscendCL@"))
    assert found["during_ratio"] == (None if "ProfilerStep" in name else pytest.approx(17 / 20))


def test_the_innermost_range_over_most_of_the_gap_is_named_and_time_counts_for_the_innermost() -> None:
    found = gap(
        run(
            ("python", "train.py(9): step", 5, 39),
            ("python", "torch/nn/modules/module.py(1): _call_impl", 10, 29),
            ("operator", "aten::linear", 11, 28),
            ("runtime", "cudaMalloc", 11, 18),
            ("runtime", "cudaMalloc", 20, 24),
        )
    )

    assert (found["during"], found["place"]) == ("aten::linear", "train.py(9): step")
    assert (found["layer"], found["mostly"]) == ("runtime", "cudaMalloc")
    assert found["mostly_ratio"] == pytest.approx(11 / 20)


def test_ranges_outside_of_the_gap_and_of_devices_do_not_count() -> None:
    found = gap(run(("operator", "aten::before", 0, 10), ("kernel", "first", 0, 30), ("operator", "aten::mm", 30, 35)))

    assert (found["layer"], found["mostly"]) == ("nothing recorded", "cudaLaunchKernel")


def test_the_thread_that_launches_counts_unless_it_was_idle() -> None:
    both = (("operator", "aten::mm", 10, 28), ("operator", "aten::add@2", 10, 30))

    assert gap(run(*both))["during"] == "aten::mm"
    assert gap(run(*both, launcher="2"))["during"] == "aten::add"
    assert gap(run(("operator", "aten::add@2", 10, 25)))["thread"] == "2"


def test_a_wait_of_the_stream_is_named_with_what_it_waits_for() -> None:
    waits = SYNCHRONIZATIONS.frame(
        slice=[50, 51], start_ns=[8 * MS] * 2, duration_ns=[22 * MS] * 2, name=["Stream Wait Event"] * 2,
        stream=[20, 7], waited_stream=[13, 14],
    )  # fmt: skip

    assert gap(run(launched=5.0, synchronizations=waits))["waits_for"] == "Stream Wait Event (stream 13)"


def test_on_a_cpu_gaps_are_between_operators() -> None:
    pauses = Run.from_frames({0: on_cpu(every(3, 30 * MS), steps=6, python=True)})

    found = pauses.analyse("gaps", limit=2)

    assert found.select("step", "duration_ns").rows() == [(3, 30 * MS + 300_000), (6, 30 * MS + 300_000)]
    assert found.select("cause", "layer", "during", "place").row(0) == (
        *("python", "python", "<built-in function sleep>", "log.py(26): write_log"),
    )
    assert found["before_name"].to_list() == ["aten::mm"] * 2


def test_only_the_longest_are_listed_and_all_that_are_long_are_known() -> None:
    pauses = Run.from_frames({0: on_cpu(lambda step: step * MS, steps=40)})

    assert pauses.analyse("gaps", limit=3)["step"].to_list() == [40, 39, 38]
    assert pauses.analyse("gaps").height == 20
    assert pauses.analyse("gap_ends", limit=1).height == 40


def test_ranks_are_explained_each_by_their_own_threads() -> None:
    one = run(("operator", "aten::mm", 11, 28))
    other = run(("runtime", "cudaFree", 11, 28), launched=5.0)
    frames = {
        rank: {name: run.table(name).drop("rank").collect() for name in ("ranks", "steps", "slices", "kernels")}
        for rank, run in ((0, one), (1, other))
    }

    found = Run.from_frames(frames).analyse("gaps")

    assert found.select("rank", "during", "launched").rows() == [(0, "aten::mm", "in"), (1, "cudaFree", "before")]


def test_gaps_between_the_same_work_are_summed_over_the_steps() -> None:
    pauses = Run.from_frames({0: on_cpu(lambda step: 10 * MS if step > 2 else 0, steps=10, python=True)})

    (row,) = pauses.analyse("recurring_gaps").rows(named=True)

    assert (row["before_name"], row["next_name"], row["cause"]) == ("aten::mm", "aten::mm", "python")
    assert (row["steps"], row["of_steps"], row["count"]) == (9, 10, 9)  # the last gap has no work behind it
    assert row["total_ns"] == 7 * 10 * MS + 9 * 300_000
    assert (row["layer"], row["during"]) == ("python", "<built-in function sleep>")
    assert pauses.analyse("recurring_gaps", limits=Limits(steps_ratio=0.95)).is_empty()


def test_of_selected_steps_the_longest_gaps_are_listed_with_all_that_happens_at_their_ends() -> None:
    pauses = Run.from_frames({0: on_cpu(lambda step: step * MS, steps=40, python=True)})

    found = pauses.select(steps="2-3").analyse("gaps", limit=1)

    assert found.select("step", "next_name", "during").rows() == [(3, "aten::mm", "<built-in function sleep>")]
    assert pauses.select(steps="2-3").analyse("recurring_gaps")["of_steps"].to_list() == [2]
