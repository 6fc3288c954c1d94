"""Short names of kernels and operators."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.pages.short_names import short, short_operator


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("void at::native::vectorized_elementwise_kernel<4, at::native::F<int>, std::array<char*, 1> >(int)",
         "vectorized_elementwise_kernel"),
        ("void (anonymous namespace)::softmax<a<b<c>>>(float*, g(int)) -> volta_sgemm_32x32_tn (x3)",
         "softmax -> volta_sgemm_32x32_tn x3"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD"),
        ("ncclDevKernel_AllReduce_Sum(ncclDevComm*, unsigned long)", "ncclDevKernel_AllReduce_Sum"),
        ("aclnnMatmul_MatMulV3 -> 4 more", "aclnnMatmul_MatMulV3 -> 4 more"),
        ("<lambda>", "<lambda>"),
    ],
)  # fmt: skip
def test_kernels_have_short_names(name: str, expected: str) -> None:
    assert pl.DataFrame({"name": [name]}).select(short("name")).item() == expected


def test_operators_of_autograd_have_their_own_name() -> None:
    names = pl.DataFrame({"operator": ["autograd::engine::evaluate_function: MmBackward0", "aten::mm"]})

    assert names.select(short_operator("operator"))["operator"].to_list() == ["MmBackward0", "aten::mm"]
