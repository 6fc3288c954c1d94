"""What kind of computing a kernel or operator does, by its names: the same classes for every device and framework."""

from __future__ import annotations

import polars as pl

CLASSES = ("attention", "convolution", "matmul", "vector", "other")
"""Fused attention; convolutions; matrix products; everything else that computes, element by element or in reductions;
what an Ascend device leaves to its own processors (AI CPU), and whole passes of which the kernels are not recorded."""

_WHOLE_PASS = r"^(forward|backward)-compute$|^optimizer$"
_ATTENTION = r"(?i)flash|fmha|attention|(^|_)attn_|_sdpa|sdpa_|scaled_dot_product"
_CONVOLUTION = (
    r"(?i)conv(olution|olve|transpose|depthwise|_|[123]d|bn|$|\d|[:<(\s]|-op|backprop|v\d|grad)|scudnn|winograd|wgrad"
    r"|dgrad|fprop|implicit_(con|gemm)|im2col|col2im"
)
_MATMUL = (
    r"(?i)gemm|gemv|matmul|(^|::|_)b?mm(_|\b|V\d)|addmm|addbmm|baddbmm|::linear\b|^linear\b|cublas|cutlass|xmma"
    r"|s?(1688|16816|884)[a-z]*_|nvjet|wmma|(^|::)(dot|mv|addmv|einsum)\b"
)
_NOT_MATMUL = r"(?i)elementwise|reduce_kernel|fill|splitkreduce_only"


def work_class(names: pl.Expr, core: pl.Expr) -> pl.Expr:
    """The class of work of these names (type or name), on this core.

    Examples:
        >>> named = pl.DataFrame({"name": ["volta_sgemm_128x32_nt", "MatMulV3", "Conv2D", "upsample_bilinear"]})
        >>> named.select(work=work_class(pl.col("name"), pl.lit(None, pl.String)))["work"].to_list()
        ['matmul', 'matmul', 'convolution', 'vector']
    """
    names = names.str.replace_all("(?i)fbgemm", "")  # a library whose kernels are of all kinds
    return (
        pl.when(core.str.contains("(?i)ai_?cpu").fill_null(value=False) | names.str.contains(_WHOLE_PASS))
        .then(pl.lit("other"))
        .when(names.str.contains(_ATTENTION))
        .then(pl.lit("attention"))
        .when(names.str.contains(_CONVOLUTION))
        .then(pl.lit("convolution"))
        .when(names.str.contains(_MATMUL) & ~names.str.contains(_NOT_MATMUL))
        .then(pl.lit("matmul"))
        .otherwise(pl.lit("vector"))
    )
