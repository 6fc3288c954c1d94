"""What names of GPU kernels say of tensor cores: whether a kernel multiplies matrices, and whether on tensor cores."""

from __future__ import annotations

import re

import polars as pl

TENSOR, PLAIN, UNKNOWN = "tensor", "plain", "unknown"

_MATRIX = (
    r"(?i)gemm|[sh]\d*cudnn|convolve|dgrad|wgrad|fprop|implicit_?gemm|winograd|xmma|nvjet|wmma|gmma|fmha|flash_?(fwd|bwd)"
    r"|\bbmm_|attention_kernel|Cijk_|igemm"
)
"""Products of matrices, convolutions and attention."""

_NOT_MATRIX = (
    r"(?i)gemv|gemmSN|gemmk1|dot_kernel|reduce|depthwise|grouped_direct|nchwTo|nhwcTo|im2col|col2im|transpose|fbgemm_gpu::"
    r"|winograd\w*(Tiles|Output|Data|Filter)|_fft|fft_|[cz]gemm|dgemm|<double|f64|imma|int8|Offsets|workspace|_scale"
)
"""Helpers of these, products with a vector, which memory bounds, convolutions by channel or by Fourier transform, and
types that tensor cores of all generations do not have or that are integers. Types of parameters stand in front."""

_SHAPE = r"(?:\d*_?)(?:884|1688|16816|16832|16864|8816|161616|8x8x4|16x8x8|16x8x16)"
"""Shapes of the instructions of tensor cores, as names of kernels have them: `h884`, `s1688`, `s16816`."""

_ON_TENSOR_CORES = (
    rf"(?i)tensorop|[a-z]{_SHAPE}(?:gemm|cudnn|fprop|dgrad|wgrad|conv|[_.]|$)|tensor\d+x\d+x\d+|wmma|gmma|hmma|nvjet"
    r"|tf32|e4m3|e5m2|_qmma|fmhaSm\d+|flash_?(fwd|bwd)|fmha_cutlass\w*_b?f16|xdlops|mfma|_MI\d+x\d+|gtcx\d?_\w*(bf16|fp16)"
)
_NOT_ON_TENSOR_CORES = (
    r"(?i)simt|_ffma|(?:kepler|maxwell|pascal|volta|turing|ampere|sm\d+)(?:_\w+?)?_[sh](?:gemm|cudnn)"
    r"|[dw]grad\w*_engine<(?:float|__half)|(?:plicit|precompute\w*)_convolve_[sh]?gemm|\bsgemm_"
    r"|magma_[sh]gemm|fmha_cutlass\w*_f32\w*_sm(?:50|60|70)"
)

_HALF = r"(?i)fp16|half|f16|bf16|_hgemm|_hcudnn|convolve_hgemm"
_SINGLE = r"(?i)sgemm|scudnn|<float|f32"

GENERATIONS: dict[str, int] = {
    r"V100|TITAN V\b|GV100": 70,
    r"\bT4\b|RTX 20\d0|TITAN RTX|Quadro RTX": 75,
    r"A100|A800|A30\b": 80,
    r"\bA(?:2|10|10G|16|40)\b|RTX 30\d0|RTX A\d000": 86,
    r"\bL(?:4|20|40|40S)\b|RTX 40\d0|Ada Generation": 89,
    r"H100|H200|H800|H20\b|GH200": 90,
    r"\bG?B[123]00\b": 100,
    r"RTX 50\d0|RTX PRO": 120,
    r"P100|P40\b|P4\b|K80|K40|M40|M60|GTX|TITAN X|GP100": 60,
}
"""Name of a device to ten times its compute capability (its first model's); NVIDIA's table of these."""

_OF_KERNELS = {r"^(?:\w+_)?(?:ampere|sm8\d|sm9\d|sm1\d\d|cutlass_8\d|cutlass_9\d)_": 80, r"volta_|turing_": 70}
"""Names of kernels to the least generation that runs them."""

WITH_TENSOR_CORES, WITH_TF32 = 70, 80
"""The least generation that has tensor cores, and the least whose tensor cores take single precision (TF32)."""


def unit_of(name: str = "name") -> pl.Expr:
    """On what units a kernel multiplies matrices: `tensor`, `plain`, `unknown` if its name does not say; null if it
    does something else."""
    plain = pl.col(name)
    # arguments and the types of parameters of a template say nothing of the kernel itself
    short = plain.str.replace(r"\(.*$", "").str.replace(r"::Params$", "")
    matrix = short.str.contains(_MATRIX) & ~short.str.contains(_NOT_MATRIX)
    return (
        pl.when(~matrix)
        .then(pl.lit(None, pl.String))
        .when(short.str.contains(_ON_TENSOR_CORES))
        .then(pl.lit(TENSOR))
        .when(short.str.contains(_NOT_ON_TENSOR_CORES))
        .then(pl.lit(PLAIN))
        .otherwise(pl.lit(UNKNOWN))
    )


def precision_in(name: str = "name") -> pl.Expr:
    """`half` or `single` precision as the kernel's name says; null if it does not."""
    return (
        pl.when(pl.col(name).str.contains(_HALF))
        .then(pl.lit("half"))
        .when(pl.col(name).str.contains(_SINGLE))
        .then(pl.lit("single"))
    )


def is_tf32(name: str = "name") -> pl.Expr:
    """Whether a kernel on tensor cores takes single precision as TF32."""
    return pl.col(name).str.contains(r"(?i)tf32|tensorop_s1688|[a-z]_s1688gemm_\d") & ~pl.col(name).str.contains(_HALF)


def generation_of(device: str | None, kernels: list[str]) -> int | None:
    """Ten times the compute capability of a device, by its name, else the least that runs some kernels; None if neither
    is known.

    Examples:
        >>> generation_of("Tesla V100-SXM2-32GB", []), generation_of(None, ["ampere_sgemm_128x64_nn"])
        (70, 80)
    """
    if device:
        known = next((number for words, number in GENERATIONS.items() if re.search(words, device)), None)
        if known is not None:
            return known
    least = [number for name in kernels for words, number in _OF_KERNELS.items() if re.search(words, name)]
    return max(least, default=None)


def least_multiple(operator: str | None, shapes: str | None) -> int | None:
    """The greatest power of two, up to 16, that divides all sizes of an operator on which tensor cores depend; None if
    unknown.

    Of a product, these are the last two dimensions of both factors; of a convolution, the channels.

    Examples:
        >>> least_multiple("aten::mm", "[[64, 100], [100, 32]]"), least_multiple("aten::mm", "[[64, 128], [128, 32]]")
        (4, 16)
    """
    if not operator or not shapes:
        return None
    found = [[int(one) for one in re.findall(r"\d+", part)] for part in re.findall(r"\[([\d, ]+)\]", shapes)]
    if "conv" in operator:
        sizes = [one for part in found if len(part) >= 3 for one in part[1:2]]
    elif re.search(r"mm|matmul|linear|attention", operator):
        sizes = [one for part in found if len(part) >= 2 for one in part[-2:]]
    else:
        return None
    divisors = [min(one & -one, 16) for one in sizes if one]
    return min(divisors, default=None)
