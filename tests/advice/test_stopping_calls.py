"""Calls of the host that stop its device: compiling at launch, memory of the driver, garbage collection."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.advice import Finding, advise, worded
from stepscope.run import Run
from stepscope.tables import COUNTERS, KERNELS, MEMORY_CURVE, OPERATORS, RANKS, SLICES, STACKS, STEPS
from tests.advice.examples import Tables, found

MS = 1_000_000
STEP = 100 * MS
STEPS_OF_ALL = 6


def stopping(name: str, category: str = "runtime", *, each: int = 25, length: int = MS, device: str = "npu") -> Tables:
    """Steps of 100 ms that begin with so many calls, one after the other, during which the device is idle; then it
    works to the end of the step."""
    starts = [step * STEP for step in range(STEPS_OF_ALL)]
    calls = [(step, start + k * length) for step, start in enumerate(starts) for k in range(each)]
    idle = each * length
    bounds = {"start_ns": starts, "end_ns": [start + STEP for start in starts]}
    launch = [start + idle - 1000 for start in starts]
    return {
        "ranks": RANKS.frame(framework=["pytorch"], device_kind=[device]),
        "steps": STEPS.frame(
            step=list(range(STEPS_OF_ALL)),
            **bounds,
            **{f"window_{key}": value for key, value in bounds.items()},
            window=["host"] * STEPS_OF_ALL,
        ),
        "slices": SLICES.frame(
            slice=list(range(len(calls))),
            category=[category] * len(calls),
            name=[name] * len(calls),
            thread=["1"] * len(calls),
            start_ns=[start for _, start in calls],
            duration_ns=[length] * len(calls),
            step=[step for step, _ in calls],
        ),
        "operators": OPERATORS.frame(
            slice=[1000], name=["aten::empty"], thread=["1"], start_ns=[0], duration_ns=[6 * STEP], step=[0], stack=[7]
        ),
        "stacks": STACKS.frame(stack=[7], text=["/x/site-packages/torch/a.py(1): f\ntrain.py(12): step"]),
        "kernels": KERNELS.frame(
            kernel=list(range(STEPS_OF_ALL)),
            start_ns=[start + idle for start in starts],
            duration_ns=[STEP - idle] * STEPS_OF_ALL,
            kind=["compute"] * STEPS_OF_ALL,
            name=["gemm"] * STEPS_OF_ALL,
            launch_start_ns=launch,
            launch_end_ns=[start + 500 for start in launch],
            step=list(range(STEPS_OF_ALL)),
        ),
    }


def only(tables: Tables) -> Finding:
    """The only finding of more than low severity: no other rule claims the same time."""
    (finding,) = [one for one in advise(Run.from_frames({0: tables})) if one.severity != "low"]
    return finding


def test_operators_compiled_as_they_are_launched() -> None:
    finding = only(stopping("AscendCL@aclopCompileAndExecute"))

    assert (finding.rule, finding.message) == ("compile-time", "launch")
    assert finding.saving_ns == pytest.approx(25 * MS, rel=0.01)
    assert finding.saving_ratio == pytest.approx(0.25, rel=0.01)
    assert "jit_compile=False" in worded(finding).action
    assert finding.code == ("train.py(12): step",)


def test_few_operators_that_are_compiled_are_none() -> None:
    assert found(stopping("AscendCL@aclopCompileAndExecute", each=2), "compile-time") == []


@pytest.mark.parametrize(
    ("device", "name", "setting"),
    [
        ("npu", "AscendCL@aclMallocMemInner", "PYTORCH_NPU_ALLOC_CONF"),
        ("npu", "AscendCL@aclrtFreePhysical", "PYTORCH_NPU_ALLOC_CONF"),
        ("cuda", "cudaMalloc", "PYTORCH_CUDA_ALLOC_CONF"),
        ("cuda", "cudaHostAlloc", "PYTORCH_CUDA_ALLOC_CONF"),
        ("rocm", "hipFree", "PYTORCH_HIP_ALLOC_CONF"),
    ],
)
def test_memory_of_the_driver_in_every_step(device: str, name: str, setting: str) -> None:
    finding = only(stopping(name, each=10, device=device))

    assert (finding.rule, finding.message) == ("memory-calls", "unknown")
    assert finding.saving_ns == pytest.approx(10 * MS, rel=0.01)
    assert setting in worded(finding).action
    assert finding.span_ns is not None and finding.span_ns[1] - finding.span_ns[0] == MS


@pytest.mark.parametrize("name", ["cudaMallocAsync", "cudaMemcpyAsync", "cudaFreeArrayless", "aclrtMemcpy"])
def test_what_stops_nothing_is_no_such_call(name: str) -> None:
    tables = stopping(name, each=10, device="cuda")

    assert (name == "cudaFreeArrayless") == bool(found(tables, "memory-calls"))


@pytest.mark.parametrize(("reserved", "message"), [(50, "room"), (95, "full")])
def test_how_full_memory_is_decides_what_to_do(reserved: int, message: str) -> None:
    curve = MEMORY_CURVE.frame(time_ns=[0], device=[0], allocated_bytes=[40], reserved_bytes=[reserved])
    capacity = pl.DataFrame({"time_ns": [0], "name": ["memory_total_bytes"], "device": [0], "value": [100.0]})
    tables = stopping("cudaMalloc", each=10, device="cuda")
    tables |= {"memory_curve": curve, "counters": COUNTERS.frame(**capacity.to_dict(as_series=False))}

    (finding,) = found(tables, "memory-calls")

    assert (finding.message, finding.parameters["used_ratio"]) == (message, reserved / 100)


def test_calls_of_the_first_step_are_start_up() -> None:
    tables = stopping("cudaMalloc", each=10, device="cuda")
    tables["slices"] = tables["slices"].filter(pl.col("step") == 0)

    assert found(tables, "memory-calls") == []


def test_garbage_collection_is_told_once() -> None:
    finding = only(stopping("GC", "gc", each=2, length=10 * MS))

    assert (finding.rule, finding.confidence) == ("garbage-collection", "certain")
    assert finding.saving_ns == pytest.approx(20 * MS, rel=0.01)
    assert "gc.freeze()" in worded(finding).action


def test_time_inside_another_call_counts_once() -> None:
    tables = stopping("AscendCL@aclrtMalloc", each=10)
    inner = tables["slices"].with_columns(
        slice=pl.col("slice") + 500, name=pl.lit("AscendCL@aclMallocMemInner"), duration_ns=pl.lit(MS // 2, pl.Int64)
    )
    tables["slices"] = pl.concat([tables["slices"], inner])

    rows = Run.from_frames({0: tables}).analyse("memory_calls")

    assert rows["name"].unique().to_list() == ["aclrtMalloc"]
    assert rows["idle_ns"].to_list() == [10 * MS] * STEPS_OF_ALL
