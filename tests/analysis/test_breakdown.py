"""Where the time of each step goes."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.analysis import activity, breakdown, marks
from stepscope.errors import Unavailable
from stepscope.tables import COLLECTIVES, KERNELS, OPERATORS, SLICES, STEPS

SPLIT = ["computing_ns", "communication_not_overlapped_ns", "memory_not_overlapped_ns", "free_ns"]


def steps(*windows: tuple[int, int]) -> pl.LazyFrame:
    return STEPS.frame(
        rank=[0] * len(windows),
        step=list(range(len(windows))),
        start_ns=[w[0] for w in windows],
        end_ns=[w[1] for w in windows],
        window_start_ns=[w[0] for w in windows],
        window_end_ns=[w[1] for w in windows],
        window=["device"] * len(windows),
    ).lazy()


def kernels(*rows: tuple[int, int, str]) -> pl.LazyFrame:
    return KERNELS.frame(
        rank=[0] * len(rows),
        kernel=list(range(len(rows))),
        start_ns=[r[0] for r in rows],
        duration_ns=[r[1] for r in rows],
        kind=[r[2] for r in rows],
        name=["k"] * len(rows),
    ).lazy()


def split(windows, work, collectives=None, operators=None, slices=None, **options) -> pl.DataFrame:
    """The breakdown of one rank from its tables."""
    found = activity(windows, work, collectives, operators, None if slices is None else marks(slices), None)
    return breakdown(windows, found, collectives, **options)


def test_overlap_counts_once_and_the_rest_is_free() -> None:
    work = kernels((0, 10, "compute"), (5, 10, "communication"), (14, 4, "memory"))

    row = split(steps((0, 30)), work).row(0, named=True)

    assert row["computing_ns"] == 10
    assert row["communication_ns"] == 10
    assert row["overlapped_ns"] == 5
    assert row["communication_not_overlapped_ns"] == 5
    assert row["memory_not_overlapped_ns"] == 3
    assert row["free_ns"] == 12


KIND = st.sampled_from(["compute", "communication", "memory"])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 50), KIND), min_size=1, max_size=20))
def test_the_parts_of_a_step_sum_to_its_window(rows) -> None:
    some_compute = (0, 1, "compute")  # without any, computing would be unknown

    found = split(steps((10, 40), (40, 90)), kernels(some_compute, *rows))

    assert found.select(pl.sum_horizontal(SPLIT) == pl.col("window_ns")).to_series().all()
    assert found["window_ns"].to_list() == [30, 50]


def test_whole_recording_spans_first_to_last_device_task() -> None:
    work = kernels((100, 10, "compute"), (150, 10, "compute"))

    row = split(steps((0, 1000)), work, whole_recording=True).row(0, named=True)

    assert (row["window_ns"], row["computing_ns"], row["free_ns"]) == (60, 20, 40)


def test_on_a_cpu_operators_compute_and_gloo_communicates() -> None:
    operators = OPERATORS.frame(
        rank=[0, 0, 0],
        slice=[0, 1, 2],
        start_ns=[0, 40, 60],
        duration_ns=[30, 5, 5],
        name=["aten::mm", "c10d::allreduce_", "aten::stack"],
    ).lazy()
    collectives = COLLECTIVES.frame(
        rank=[0], collective=[0], group=["0"], sequence=[0], operation=["all_reduce"], name=["gloo:all_reduce"],
        start_ns=[20], duration_ns=[30], on_device=[False],
    ).lazy()  # fmt: skip
    slices = SLICES.frame(
        rank=[0], slice=[9], start_ns=[55], duration_ns=[20], category=["annotation"],
        name=["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"],
    ).lazy()  # fmt: skip

    row = split(steps((0, 100)), None, collectives, operators, slices).row(0, named=True)

    assert row["computing_ns"] == 30  # not the operator inside the data loader
    assert row["communication_not_overlapped_ns"] == 20
    assert row["data_loading_ns"] == 20
    assert row["free_ns"] == 50


def on_a_host(*operators: tuple[str, int, int]) -> pl.LazyFrame:
    """Operators (name, start, duration) of one thread."""
    names, starts, lengths = zip(*operators, strict=True)
    return OPERATORS.frame(
        rank=[0] * len(names),
        slice=list(range(len(names))),
        start_ns=list(starts),
        duration_ns=list(lengths),
        name=list(names),
        thread=["1"] * len(names),
    ).lazy()


def one_call(start: int, duration: int) -> pl.LazyFrame:
    return COLLECTIVES.frame(
        rank=[0], collective=[0], group=["0"], sequence=[0], operation=["all_gather"], name=["gloo:all_gather"],
        start_ns=[start], duration_ns=[duration], on_device=[False],
    ).lazy()  # fmt: skip


@pytest.mark.parametrize("name", ["autograd::engine::evaluate_function: AddmmBackward0", "_ReduceBackward"])
def test_on_a_cpu_an_operator_around_a_call_waits_for_it_and_computes_only_besides(name: str) -> None:
    """A hook of FSDP gathers parameters at the backward pass; a function of tensor parallelism sums over ranks."""
    operators = on_a_host((name, 10, 80), ("c10d::_allgather_base_", 20, 5), ("aten::mm", 70, 15))

    row = split(steps((0, 100)), None, one_call(22, 40), operators).row(0, named=True)

    assert row["communication_not_overlapped_ns"] == 42  # from the start of its call to the end of the gathering
    assert row["computing_ns"] == 38


def test_on_a_cpu_compiled_code_computes_although_it_makes_calls() -> None:
    operators = on_a_host(("Torch-Compiled Region: 0/0", 10, 80), ("c10d::allreduce_", 20, 5))

    assert split(steps((0, 100)), None, one_call(22, 40), operators)["computing_ns"].to_list() == [80]


def test_on_a_cpu_what_runs_beside_the_call_of_another_thread_computes() -> None:
    operators = on_a_host(("aten::mm", 10, 80), ("c10d::allreduce_", 95, 5))

    assert split(steps((0, 100)), None, one_call(22, 40), operators)["computing_ns"].to_list() == [80]


def test_receives_are_the_bubble_of_a_pipeline() -> None:
    collectives = COLLECTIVES.frame(
        rank=[0], collective=[0], group=["pp"], sequence=[0], operation=["recv"], name=["recv"],
        start_ns=[10], duration_ns=[25], on_device=[True], step=[0],
    ).lazy()  # fmt: skip

    row = split(steps((0, 100)), kernels((0, 10, "compute")), collectives).row(0, named=True)

    assert (row["bubble_ns"], row["stage_ns"]) == (25, 75)
    assert row["communication_not_overlapped_exclude_receive_ns"] == 0


def test_communication_alone_does_not_mean_that_nothing_was_computed() -> None:
    with pytest.raises(Unavailable, match="without compute kernels"):
        split(steps((0, 30)), kernels((0, 10, "communication")))
