"""Short names of kernels and operators."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.pages.short_names import readable, short


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


NS = "void at::native::"
ALIKE = [
    f"{NS}elementwise<4, at::native::AddFunctor<float>, std::array<char*, 1> >(int)",
    f"{NS}elementwise<4, at::native::AddFunctor<double>, std::array<char*, 1> >(int)",
    f"{NS}elementwise<4, at::native::exp_cuda(at::TensorIterator&)::{{lambda()#2}}::operator()() const>(int)",
]


def shown(*names: str | None) -> list[str | None]:
    return readable(pl.DataFrame({"name": names}, schema={"name": pl.String}))["name"].to_list()


def test_operators_of_autograd_have_their_own_name_unless_there_are_two() -> None:
    prefix = "autograd::engine::evaluate_function: "

    assert shown(prefix + "MmBackward0", "aten::mm", None) == ["MmBackward0", "aten::mm", None]
    assert shown(prefix + "Mm", "Mm") == ["Mm<autograd>", "Mm"]


def test_names_that_would_be_the_same_keep_the_words_that_differ() -> None:
    assert shown(*ALIKE) == [
        "elementwise<AddFunctor, float>",
        "elementwise<AddFunctor, double>",
        "elementwise<exp_cuda>",
    ]
    assert shown(*ALIKE[:1]) == ["elementwise"]
    assert shown("void f<1>()", "void f<2>()") == ["f<1>", "f<2>"]


@pytest.mark.parametrize(
    "name",
    [
        "aten::mm",
        "step(1)",
        "Memcpy HtoD (Pinned -> Device)",
        "Default/fc-Dense/MatMul-op0",
        "a.py(3): f",
        "<lambda>",
        "torch::autograd::CppNode<LookupFunction>",
        "x -> y",
    ],
)
def test_what_is_no_kernel_keeps_its_name(name: str) -> None:
    assert shown(name) == [name]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "std::enable_if<(((8)>(0)))&&x::_type<y::Z>::exists, void>::type x::rms_norm<y::Z, 8>(y::Z*, int)",
            "rms_norm",
        ),
        ("void cutlass::Kernel<x::gemm_64x64>(x::gemm_64x64::Params)", "Kernel<gemm_64x64>"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "ncclKernel_AllReduce_RING_LL_Sum_float"),
    ],
)
def test_a_kernel_has_the_name_of_its_function(name: str, expected: str) -> None:
    assert shown(name) == [expected]


@pytest.mark.parametrize("names", [ALIKE, ["void f<1, 2>()", "void f<2, 1>()", "void f<1>()"]])
def test_different_names_stay_different(names: list[str]) -> None:
    assert len(set(shown(*names))) == len(names)
