"""Hardware counters by kernel (CUPTI range profiles): no times of kernels, and no job of the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.errors import Unavailable
from stepscope.run import open_run
from tests.sources.test_kineto import Trace

FFMA, DRAM = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "dram__bytes_read.sum"


def counted(kernels: int = 77, launches: int = 77) -> Trace:
    """A step that launches kernels, and a range for each of them at a time of the profiler's own making."""
    trace = Trace(deviceProperties=[{"id": 0, "name": "NVIDIA A100"}]).add("user_annotation", "ProfilerStep#1", 0, 8000)
    for number in range(launches):
        trace.add("cpu_op", "aten::mul", 100 * number, 90)
        trace.add("cuda_runtime", "cudaLaunchKernel", 100 * number + 10, 50, correlation=number + 1)
    for number in range(kernels):
        values = {FFMA: float(number), DRAM: 32.0 * number, "l1tex__t_bytes.sum": 1.0}
        trace.add("cuda_profiler_range", f"kernel{number}", 104 * number, 104, tid=0, device=0, **values)
    # `add` writes a blank for two underscores
    for event in trace.events:
        event["args"] = {
            name.replace("smsp ", "smsp__").replace("dram ", "dram__"): v for name, v in event["args"].items()
        }
    return trace


def test_a_range_profile_is_that_of_a_device(tmp_path: Path) -> None:
    tables = counted().read(tmp_path)

    assert (tables.rank["device_kind"], tables.rank["device_name"]) == ("cuda", None)
    assert "kernels" not in tables.frames
    (problem,) = [p for p in tables.problems() if "counter ranges" in p]
    assert problem.startswith("77 counter ranges of CUPTI's range profiler were recorded, but no kernel times")


def test_ranges_are_no_host_ranges(tmp_path: Path) -> None:
    tables = counted().read(tmp_path)

    assert set(tables["slices"]["category"]) == {"annotation", "operator", "runtime"}


def test_counters_stand_at_the_launches(tmp_path: Path) -> None:
    tables = counted(3, 3).read(tmp_path)

    rows = tables["counters"].select("time_ns", "name", "device", "value").rows()
    assert rows == [
        (10_000, DRAM, 0, 0.0),
        (10_000, FFMA, 0, 0.0),
        (110_000, DRAM, 0, 32.0),
        (110_000, FFMA, 0, 1.0),
        (210_000, DRAM, 0, 64.0),
        (210_000, FFMA, 0, 2.0),
    ]


def test_ranges_that_are_not_one_a_launch_are_not_read(tmp_path: Path) -> None:
    tables = counted(1, 5).read(tmp_path)

    assert "counters" not in tables.frames
    assert any("5 launches" in problem for problem in tables.problems())


def test_operators_are_not_what_the_device_computed(tmp_path: Path) -> None:
    counted().read(tmp_path)

    with pytest.raises(Unavailable, match="what the device did is unknown"):
        open_run([tmp_path]).analyse("breakdown")


def test_launches_without_any_device_event_are_reported(tmp_path: Path) -> None:
    tables = counted(0, 5).read(tmp_path)

    assert tables.rank["device_kind"] == "cuda"
    assert any("none of 5 launches" in problem for problem in tables.problems())
