"""Names of kernels that communicate, and of those that only look like it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from ascend_files import kernel_row, rank_directory, read_text, write_kernels

from stepscope.run import open_run
from stepscope.sources.communication_names import library_kernels
from tests.sources.test_kineto import NCCL, Trace

CALLS = [
    ("void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)", "all_to_all"),
    ("void my_ep::internode::combine<false, 8, __nv_bfloat16>(int4*)", "all_to_all"),
    ("_ZN7deep_ep9internode8dispatchILb0ELi4EEEvP4int4", "all_to_all"),
    ("void uccl::intranode::combine<__nv_bfloat16, 8>(int)", "all_to_all"),
    ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", None),
    ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(int)", "all_reduce"),
    ("void c10d::symmetric_memory::(anonymous namespace)::one_shot_all_reduce_kernel<float, 16>(float**)", None),
]
PARTS = [
    "void deep_ep::internode_ll::dispatch<true, false, 7168>(void*)",
    "void deep_ep::internode::notify_dispatch<false, 4>(int const*)",
    "void deep_ep::intranode::barrier<8>(int**, int)",
    "void nccl_ep::internode_ll::combine<false, 7168, 9>(void*)",
    "void mori::moe::EpDispatchIntraNodeKernel<hip_bfloat16>(int)",
    "void a2a_dispatch_send_kernel<true, 16>(unsigned long)",
    "nvshmemi_proxy_kernel(int)",
    "void bytedance::flux::all2all_single_2d_kernel<4>(int)",
    "aclnnMoeDistributeDispatchV2_MoeDistributeDispatchV2_MoeDistributeDispatchV2",
    "MoeDistributeCombine",
]
COMPUTING = [
    "void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*)",
    "void attention::intranode::dispatch<8>(int)",
    "void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*, long*>>(int)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor<float>>(int)",
    "void my::fused_kernel<nccl::Window>(ncclDevComm*)",
    "void flux::ag_gemm_kernel<nvshmem_tile>(int)",
    "triton_poi_fused_all_gather_into_tensor_wait_tensor_0",
    "MatmulAllReduceAddRmsNorm",
    "sleep::internode_helper(int)",
]


@pytest.mark.parametrize(("name", "operation"), CALLS)
def test_kernels_that_are_calls(name: str, operation: str | None) -> None:
    assert library_kernels(pl.Series([name])).rows() == [(True, True, operation)]


@pytest.mark.parametrize("name", PARTS)
def test_kernels_that_are_parts_of_calls(name: str) -> None:
    assert library_kernels(pl.Series([name])).rows() == [(True, False, None)]


@pytest.mark.parametrize("name", COMPUTING)
def test_kernels_that_compute(name: str) -> None:
    assert library_kernels(pl.Series([name])).rows() == [(False, False, None)]


def test_expert_parallel_kernels_on_a_side_stream_are_hidden_communication(tmp_path: Path) -> None:
    trace = Trace().add("cpu_op", "aten::mm", 0, 500).launch("gemm", 1, 10, 100, 1)
    side = {"dispatch<false, 4>(int4*)": 20, "notify_dispatch<false>(int*)": 60, "combine<4>(int4*)": 90}
    for number, (name, start) in enumerate(side.items(), 2):
        trace.add("cuda_runtime", "cudaLaunchKernel", number, 1, correlation=number)
        place = {"tid": 20, "device": 0, "stream": 20, "correlation": number}
        trace.add("kernel", f"void new_ep::internode::{name}", start, 30, **place)

    tables = trace.read(tmp_path)

    assert tables["kernels"]["kind"].to_list() == ["compute", *["communication"] * 3]
    calls = tables["collectives"].select("operation", "start_ns").rows()
    assert calls == [("all_to_all", 20_000), ("all_to_all", 90_000)]
    step = open_run([tmp_path / "trace.json"]).analyse("breakdown").row(0, named=True)
    parts = ("computing_ns", "communication_ns", "communication_not_overlapped_ns")
    assert [step[name] for name in parts] == [100_000, 90_000, 10_000]


def test_fused_communication_among_an_ascend_devices_kernels(tmp_path: Path) -> None:
    types = ["MatMulV3", "MoeDistributeDispatchV2", "MatmulAllReduce"]
    output = rank_directory(tmp_path)
    write_kernels(output, rows=[kernel_row(5, 1000.0 + 200 * at).replace("MatMulV3", a) for at, a in enumerate(types)])

    kernels = read_text(output.parent)["kernels"]

    assert kernels["kind"].to_list() == ["compute", "communication", "compute"]


def test_a_part_of_a_call_that_the_framework_describes_is_a_call(tmp_path: Path) -> None:
    trace = Trace().add("cpu_op", "record_param_comms", 0, 20, **NCCL)
    trace.launch("void nvshmem_kernel<4>(int)", 2, 50, 5, 1)

    assert trace.read(tmp_path)["collectives"]["operation"].to_list() == ["all_gather"]
