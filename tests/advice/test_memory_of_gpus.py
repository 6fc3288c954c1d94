"""Device memory in steps as PyTorch records it on GPUs: retries of the allocator, and how full memory is."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.advice import Finding, worded
from stepscope.run import open_run
from tests.kineto_job import DEVICES, Device, RankTrace, advised, by_rule, grave

STEP = 100_000


def job(device: Device, used: float, calls: tuple[str, ...] = ("Free", "Malloc"), *, first: bool = False) -> RankTrace:
    """Six steps; all but the first begin with five bursts of calls, during which the device is idle for 2 ms each.

    Args:
        device: What it runs on.
        used: Memory that the allocator has reserved, of that of the device.
        calls: Of the runtime; of the driver if their names are whole.
        first: Whether only the first step has them.
    """
    trace = RankTrace(device=device)
    capacity = DEVICES[device]["totalGlobalMem"]
    for step in range(6):
        at = step * STEP
        trace.step(step, at, STEP)
        bursts = 5 if calls and (step == 0) == first else 0
        for burst in range(bursts):
            for place, call in enumerate(calls):
                begun = at + 500 + burst * 2000 + place * 1000
                if call[0].isupper():
                    trace.call(call, begun, 990)
                else:
                    trace.add("cuda_driver", call, begun, 990)
        trace.memory(at + 20_000, round(capacity * used * 0.8), round(capacity * used))
        begun = at + (12_000 if bursts else 450)
        trace.operator("aten::mm", begun - 100, 50)
        trace.kernel("gemm", begun, at + STEP + 400 - begun, launched=begun - 80)
    return trace


def found(directory: Path, trace: RankTrace) -> dict[tuple[str, str], Finding]:
    return by_rule(advised(directory, trace))


@pytest.mark.parametrize(
    ("device", "variable"), [("cuda", "PYTORCH_CUDA_ALLOC_CONF"), ("rocm", "PYTORCH_HIP_ALLOC_CONF")]
)
def test_retries_of_the_allocator_in_steps_are_told_with_how_full_memory_is(
    tmp_path: Path, device: Device, variable: str
) -> None:
    finding = found(tmp_path, job(device, 0.97))["memory-calls", "full"]

    words = worded(finding)
    prefix = {"cuda": "cuda", "rocm": "hip"}[device]
    assert f"Mostly {prefix}Free and {prefix}Malloc" in words.cause and "97% at the peak" in words.cause
    assert words.action.startswith(f"Set {variable}=expandable_segments:True")
    assert "micro-batch" in words.action
    assert finding.saving_ns == pytest.approx(10 * 990_000, rel=0.03)  # of all steps, as a replay shows


@pytest.mark.parametrize("device", ["cuda", "rocm"])
def test_with_room_the_job_need_not_be_smaller(tmp_path: Path, device: Device) -> None:
    finding = found(tmp_path, job(device, 0.5))["memory-calls", "room"]

    assert "empty_cache" in worded(finding).action
    assert "micro-batch" not in worded(finding).action


def test_segments_that_grow_already_are_not_to_be_made_so(tmp_path: Path) -> None:
    finding = found(tmp_path, job("cuda", 0.5, ("cuMemUnmap", "cuMemMap")))["memory-calls", "mapped"]

    assert "expandable_segments" not in worded(finding).action


def test_calls_of_the_first_step_are_warm_up(tmp_path: Path) -> None:
    findings = advised(tmp_path, job("cuda", 0.5, first=True))

    assert ("memory-calls", "room") not in by_rule(findings)
    assert grave(findings) == []


def test_the_memory_of_a_gpu_is_known_from_its_properties(tmp_path: Path) -> None:
    peak = open_run(job("cuda", 0.97).write(tmp_path)).analyse("memory_peak").row(0, named=True)

    assert (peak["device"], peak["capacity_bytes"]) == (0, DEVICES["cuda"]["totalGlobalMem"])
    assert peak["used_ratio"] == pytest.approx(0.97)


def test_the_memory_of_a_host_is_not_that_of_its_gpu(tmp_path: Path) -> None:
    trace = job("cuda", 0.5)
    for event in trace.events:
        if event["name"] == "[memory]":
            event["args"]["Device Type"] = 0

    peak = open_run(trace.write(tmp_path)).analyse("memory_peak").row(0, named=True)

    assert (peak["device"], peak["capacity_bytes"]) == (None, None)


def test_memory_that_is_nearly_in_use_is_a_finding_of_its_own(tmp_path: Path) -> None:
    trace = job("rocm", 0.95, ())
    for event in trace.events:
        if event["name"] == "[memory]":
            event["args"]["Total Allocated"] = event["args"]["Total Reserved"]

    findings = found(tmp_path, trace)

    assert [rule for rule, _ in findings] == ["memory-capacity"]
