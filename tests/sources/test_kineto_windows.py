"""Windows of steps on a device: which work begins a step, and which steps do nothing."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.run import open_run
from tests.sources.test_kineto import Tables, Trace

BEHIND = 160
"""By so much, in us, the device is behind the host."""


def step(
    trace: Trace, number: int, start: float, kernel: float, *, copy: float | None = None, length: float = 95
) -> None:
    """A step of 100 us on the host: the copy of its batch on stream 20, then a kernel on stream 7."""
    trace.add("user_annotation", f"ProfilerStep#{number}", start, 100)
    if copy is not None:
        trace.add("cuda_runtime", "cudaMemcpyAsync", start + 1, 1, correlation=1000 + number)
        side = {"device": 0, "stream": 20, "correlation": 1000 + number, "bytes": 64}
        trace.add("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", copy, 2, tid=20, **side)
    trace.launch(f"k{number}", start + 10, kernel, length, number)


def steps(count: int, behind: float, *, copy: float | None = None, length: float = 95) -> Trace:
    """Steps one behind the other, each with its kernel and copy so much after it begins."""
    trace = Trace()
    for number in range(1, count + 1):
        start = number * 100 - 100
        step(trace, number, start, start + behind, copy=None if copy is None else start + copy, length=length)
    return trace


def windows(tables: Tables) -> list[tuple[int, int]]:
    return tables["steps"].select("window_start_ns", "window_end_ns").rows()


def test_an_early_copy_on_a_side_stream_begins_no_step(tmp_path: Path) -> None:
    """The host is done after 400 us, the device after 400 us and the backlog: no step may get all of that."""
    tables = steps(4, BEHIND, copy=2).read(tmp_path)

    us = 1000
    assert windows(tables) == [(160 * us, 260 * us), (260 * us, 360 * us), (360 * us, 460 * us), (460 * us, 555 * us)]
    run = open_run([tmp_path])
    assert run.analyse("breakdown")["computing_ns"].to_list() == [95 * us] * 4


def test_work_on_a_side_stream_begins_a_step_once_the_main_one_is_through(tmp_path: Path) -> None:
    tables = steps(3, 20, copy=3, length=60).read(tmp_path)

    assert windows(tables) == [(3_000, 103_000), (103_000, 203_000), (203_000, 280_000)]


def test_an_early_kernel_on_a_side_stream_begins_no_step_either(tmp_path: Path) -> None:
    trace = Trace()
    for number in range(1, 4):
        start = number * 100 - 100
        step(trace, number, start, start + BEHIND)
        trace.add("cuda_runtime", "cudaLaunchKernel", start + 2, 1, correlation=500 + number)
        side = {"device": 0, "stream": 20, "correlation": 500 + number}
        trace.add("kernel", "normalise", start + 4, 3, tid=20, **side)

    tables = trace.read(tmp_path)

    assert windows(tables) == [(160_000, 260_000), (260_000, 360_000), (360_000, 455_000)]


def test_a_last_step_without_device_work_is_no_step(tmp_path: Path) -> None:
    trace = steps(1, 20)
    trace.add("user_annotation", "ProfilerStep#2", 100, 1).add("cpu_op", "aten::zero_", 100.2, 0.5)

    tables = trace.read(tmp_path)

    assert tables["steps"].select("step", "recorded").rows() == [(1, True), (2, False)]
    assert any("1 of 2 steps (2)" in problem for problem in tables.problems())
    run = open_run([tmp_path])
    assert run.analyse("breakdown")["window_ns"].to_list() == [95_000]
    assert run.analyse("step_trace")["step"].to_list() == [1]


def test_a_last_step_with_nothing_but_the_copy_of_its_batch_is_none_either(tmp_path: Path) -> None:
    trace = steps(1, BEHIND)
    trace.add("user_annotation", "ProfilerStep#2", 100, 5)
    trace.add("cuda_runtime", "cudaMemcpyAsync", 101, 1, correlation=77)
    trace.add("gpu_memcpy", "Memcpy HtoD", 103, 2, tid=20, device=0, stream=20, correlation=77, bytes=64)

    run = open_run([_written(trace, tmp_path)])

    assert run.analyse("breakdown").select("step", "window_ns").rows() == [(1, 95_000)]


def test_a_last_step_on_a_host_in_which_no_operator_ran_is_no_step(tmp_path: Path) -> None:
    trace = Trace().add("user_annotation", "ProfilerStep#1", 0, 100).add("cpu_op", "aten::mm", 10, 80)
    trace.add("user_annotation", "ProfilerStep#2", 100, 1)

    run = open_run([_written(trace, tmp_path)])

    assert run.analyse("breakdown").select("step", "window_ns").rows() == [(1, 100_000)]


def test_a_step_in_between_without_operators_stays(tmp_path: Path) -> None:
    """On a host it is time like any other: a pause."""
    trace = Trace()
    for number in (1, 3):
        trace.add("user_annotation", f"ProfilerStep#{number}", number * 100, 100)
        trace.add("cpu_op", "aten::mm", number * 100 + 10, 80)
    trace.add("user_annotation", "ProfilerStep#2", 200, 100)

    tables = trace.read(tmp_path)

    assert tables["steps"].filter(pl.col("recorded").fill_null(True))["step"].to_list() == [1, 2, 3]


def _written(trace: Trace, directory: Path) -> Path:
    trace.read(directory)
    return directory
