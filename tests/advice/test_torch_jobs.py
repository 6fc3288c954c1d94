"""Faults of PyTorch jobs as its profiler records them on CUDA, ROCm and a CPU, from the trace to fitting advice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stepscope.advice import LANGUAGES, Finding, worded
from stepscope.advice.finding import Platform
from tests.advice.test_platforms import misplaced
from tests.kineto_job import Device, RankTrace, advised, by_rule, grave

STEP = 20_000
GPUS: list[Device] = ["cuda", "rocm"]
DEVICES: list[Device] = ["cuda", "rocm", "cpu"]


def steps(fill: Callable[[RankTrace, int], None], device: Device, *, count: int = 6, **options: object) -> RankTrace:
    """A job of one rank, with as many steps of 20 ms, each filled from its start on (us)."""
    trace = RankTrace(device=device, **options)  # type: ignore[arg-type]
    for number in range(count):
        trace.step(number, number * STEP, STEP)
        fill(trace, number * STEP)
    return trace


def work(trace: RankTrace, at: float, length: float, name: str = "gemm", **operator: object) -> None:
    """An operator, and on a GPU its kernel; both of that length on a CPU."""
    on_cpu = trace.device == "cpu"
    trace.operator("aten::mm", at - 20, length if on_cpu else 15, **operator)  # type: ignore[arg-type]
    if not on_cpu:
        trace.kernel(name, at, length, launched=at - 15, External__id=len(trace.events) - 1)


def told(directory: Path, *ranks: RankTrace) -> dict[tuple[str, str], Finding]:
    """Findings, of which all words fit the framework and the device."""
    findings = advised(directory, *ranks)
    for finding in findings:
        for language in LANGUAGES:
            words = worded(finding, language)
            for text in (words.summary, words.cause, words.action):
                assert not misplaced(text, Platform("pytorch", ranks[0].device)), text
    return by_rule(findings)


def rules(found: dict[tuple[str, str], Finding]) -> set[str]:
    return {rule for rule, _ in found}


@pytest.mark.parametrize("device", DEVICES)
def test_a_job_that_computes_all_the_time_has_no_grave_finding(tmp_path: Path, device: Device) -> None:
    def busy(trace: RankTrace, at: int) -> None:
        for place in range(4):
            work(trace, at + place * 5000 + 30, 4960)

    assert grave(advised(tmp_path, steps(busy, device))) == []


SINGLE = {"dims": [[512, 512], [512, 512]], "types": ["float", "float"]}


@pytest.mark.parametrize(
    ("device", "model", "kernel", "message"),
    [
        ("cuda", {}, "ampere_sgemm_128x128_nn", "single precision without TF32"),
        ("cuda", {"name": "Tesla V100-SXM2-16GB", "computeMajor": 7}, "volta_sgemm_128x64_nn", "single precision"),
        ("cuda", {"name": "Tesla P100", "computeMajor": 6}, "maxwell_sgemm_128x64_nn", None),
        ("rocm", {}, "Cijk_Ailk_Bljk_SB_MT128x128x16", None),
        ("cpu", {}, "", None),
    ],
)
def test_tensor_cores_are_asked_for_only_where_there_are_any(
    tmp_path: Path, device: Device, model: dict[str, object], kernel: str, message: str | None
) -> None:
    def multiply(trace: RankTrace, at: int) -> None:
        for place in range(4):
            work(trace, at + place * 5000 + 30, 4960, kernel, **SINGLE)

    found = told(tmp_path, steps(multiply, device, model=model))

    assert [name for rule, name in found if rule == "tensor-cores"] == ([] if message is None else [message])


@pytest.mark.parametrize("device", GPUS)
def test_threads_in_place_of_processes(tmp_path: Path, device: Device) -> None:
    def threaded(trace: RankTrace, at: int) -> None:
        trace.add("user_annotation", "DataParallel.forward", at + 10, 9000)
        work(trace, at + 40, 19_900)

    assert (
        "DistributedDataParallel" in worded(told(tmp_path, steps(threaded, device))["data-parallel", "threads"]).action
    )


@pytest.mark.parametrize(("device", "library"), [("cuda", "NCCL"), ("rocm", "RCCL"), ("cpu", None)])
def test_gpus_that_communicate_over_their_hosts(tmp_path: Path, device: Device, library: str | None) -> None:
    def summed(trace: RankTrace, at: int) -> None:
        work(trace, at + 40, 12_000)
        trace.add("user_annotation", "gloo:all_reduce", at + 12_500, 6000, thread=5)
        trace.operator("c10d::allreduce_", at + 12_400, 6200)

    ranks = []
    for rank in (0, 1):
        trace = steps(summed, device, rank=rank, world=2)
        trace.header["distributedInfo"]["backend"] = "gloo"
        ranks.append(trace)
    found = told(tmp_path, *ranks)

    assert (("data-parallel", "backend") in found) == (library is not None)
    if library is not None:
        assert f"Use {library}:" in worded(found["data-parallel", "backend"]).action


@pytest.mark.parametrize("device", GPUS)
def test_kernels_of_few_blocks(tmp_path: Path, device: Device) -> None:
    def small(trace: RankTrace, at: int) -> None:
        for place in range(10):
            begun = at + place * 2000 + 20
            trace.operator("aten::add", begun - 10, 8)
            sizes = {"grid": [4, 1, 1], "block": [128, 1, 1], "blocks__per__SM": 0.03, "warps__per__SM": 0.1}
            trace.kernel("elementwise_kernel", begun, 1980, launched=begun - 9, **sizes)

    assert "low-occupancy" in rules(told(tmp_path, steps(small, device)))


@pytest.mark.parametrize(
    ("device", "copy", "message"),
    [
        ("cuda", "Memcpy HtoD (Pageable -> Device)", "pageable"),
        ("cuda", "Memcpy HtoD (Pinned -> Device)", "host"),
        ("rocm", "Memcpy HtoD (Host -> Device)", "host"),
        ("cuda", "Memcpy DtoD (Device -> Device)", "device"),
    ],
)
def test_copies_that_nothing_hides(tmp_path: Path, device: Device, copy: str, message: str) -> None:
    def copied(trace: RankTrace, at: int) -> None:
        trace.kernel(copy, at + 20, 3000, category="gpu_memcpy", call="MemcpyAsync", bytes=10_000_000)
        work(trace, at + 3040, 16_900)

    finding = told(tmp_path, steps(copied, device))["memory-copies", message]

    assert finding.saving_ns == pytest.approx(3_000_000, rel=0.01)
    assert finding.saving_low_ns == 0
    assert ("pin_memory=True" in worded(finding).action) == (message == "pageable")


def late_launches(trace: RankTrace, at: int) -> None:
    """Short kernels, with longer gaps until the host has launched the next one."""
    for place in range(100):
        begun = at + place * 200 + 30
        trace.operator("aten::add", begun - 15, 12)
        trace.kernel("elementwise_kernel", begun, 60, launched=begun - 6)


@pytest.mark.parametrize(("device", "graphs"), [("cuda", True), ("rocm", False)])
def test_hosts_that_launch_too_late(tmp_path: Path, device: Device, graphs: bool) -> None:
    finding = told(tmp_path, steps(late_launches, device))["idle-time", "dispatch"]

    assert ("CUDA graphs" in worded(finding).action) == graphs
    assert "torch.compile" in worded(finding).action
    assert finding.saving_ns == pytest.approx(140 * 100_000, rel=0.05)


def test_what_recording_takes_is_told_and_left_out_of_the_least_saving(tmp_path: Path) -> None:
    def recorded(trace: RankTrace, at: int) -> None:
        late_launches(trace, at)
        for place in range(2000):
            trace.operator("aten::view", at + 100 + place * 9, 1)

    finding = told(tmp_path, steps(recorded, "cuda"))["idle-time", "dispatch"]

    assert finding.parameters["recording_ns"] == 2100 * 1000
    assert finding.saving_low_ns <= finding.saving_ns - 2_000_000


@pytest.mark.parametrize("device", GPUS)
def test_compiled_code_that_is_launched_too_late_is_not_to_be_compiled(tmp_path: Path, device: Device) -> None:
    def compiled(trace: RankTrace, at: int) -> None:
        trace.operator("TorchDynamo Cache Lookup", at + 5, 4)
        trace.operator("Torch-Compiled Region: 0/0", at + 10, 9000)
        late_launches(trace, at)

    found = told(tmp_path, steps(compiled, device))

    assert ("idle-time", "dispatch") not in found
    action = worded(found["idle-time", "dispatch/compiled"]).action
    assert ("reduce-overhead" in action) == (device == "cuda")


@pytest.mark.parametrize("device", GPUS)
def test_values_that_are_read_back(tmp_path: Path, device: Device) -> None:
    def read(trace: RankTrace, at: int) -> None:
        work(trace, at + 40, 9000)
        trace.operator("aten::item", at + 60, 9020).operator("aten::_local_scalar_dense", at + 61, 9018)
        trace.call("StreamSynchronize", at + 70, 9000)
        work(trace, at + 13_000, 6900)

    found = told(tmp_path, steps(read, device))

    finding = next(one for (rule, _), one in found.items() if rule == "host-synchronisation")
    assert ".item()" in worded(finding).action + worded(finding).cause


@pytest.mark.parametrize("device", DEVICES)
def test_a_loader_without_workers(tmp_path: Path, device: Device) -> None:
    def loaded(trace: RankTrace, at: int) -> None:
        name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        trace.add("user_annotation", name, at + 5, 8000)
        work(trace, at + 8100, 11_800)

    finding = told(tmp_path, steps(loaded, device))["idle-time", "data_loading/no workers"]

    assert "num_workers" in worded(finding).action
    assert finding.saving_ns == pytest.approx(8_000_000, rel=0.05)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_that_are_summed_in_each_micro_batch(tmp_path: Path, device: Device) -> None:
    def accumulated(trace: RankTrace, at: int) -> None:
        for place in range(4):
            begun = at + place * 4500 + 40
            trace.add("user_annotation", "DistributedDataParallel.forward", begun, 50)
            work(trace, begun + 60, 3000)
            trace.operator("c10d::allreduce_", begun + 3100, 1200, thread=2)
            if device == "cpu":
                trace.add("user_annotation", "gloo:all_reduce", begun + 3150, 1100, thread=5)
            else:
                trace.collective("allreduce", begun + 3150, 1100, elements=2**20, launched=begun + 3105, thread=2)
        trace.add("user_annotation", "Optimizer.step#SGD.step", at + 18_500, 500)
        work(trace, at + 19_000, 400)

    found = told(tmp_path, *(steps(accumulated, device, rank=rank, world=2, groups={"0": [0, 1]}) for rank in (0, 1)))

    finding = found["data-parallel", "every_backward"]
    assert "no_sync" in worded(finding).action
    assert finding.parameters["needless"] == pytest.approx(0.75)
