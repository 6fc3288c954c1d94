"""The least that an operator moves to and from memory: each input read once and each output written once.

Sizes of inputs are recorded; those of outputs follow from the formulas of `flop_formulas`; |x| is a number of elements:

* matrix product of a and b with 2 m n k operations: |output| = (operations / 2)^2 / (|a| |b|), of a batch times its
  size;
* convolution: |output| = operations C_out / (2 |weight|); its gradients are as large as input and weight;
* attention: the output is as large as the queries, its gradients as queries, keys and values.

All are taken to have the data type of the first input. What caches save is not counted, nor what an operator reads
twice: a kernel that moves exactly this much is the best there can be.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from stepscope.analysis.methods.flop_formulas import COUNTED
from stepscope.analysis.methods.shapes import Shapes
from stepscope.present import data_type

SIZES = {
    **dict.fromkeys(("float64", "int64", "complex64"), 8),
    **dict.fromkeys(("float32", "int32", "tf32"), 4),
    **dict.fromkeys(("float16", "bf16", "bfloat16", "int16"), 2),
    **dict.fromkeys(("int8", "uint8", "float8_e4m3fn", "float8_e5m2", "hifloat8"), 1),
}
"""Bytes of an element."""

_BATCHED = ("bmm", "baddbmm", "BatchMatMul")
_FIRST = {"aten::addmm": 1, "aten::addmm_": 1, "aten::baddbmm": 1, "aten::baddbmm_": 1, "aten::_addmm_activation": 1}
"""Position of the first factor of products, if it is not the first input."""


def least_bytes(kind: str, inputs: Shapes, of_type: str | None, flops: float) -> float | None:
    """Bytes of one call; None if they do not follow from its shapes."""
    size = SIZES.get(data_type(of_type)) if of_type else None
    if size is None or kind not in COUNTED or not flops or any(one < 0 for shape in inputs for one in shape):
        return None
    try:
        written = _written(kind, inputs, flops)
    except (IndexError, ZeroDivisionError):
        return None
    return None if written is None else size * (sum(prod(shape) for shape in inputs if shape) + written)


def _written(kind: str, inputs: Shapes, flops: float) -> float | None:
    """Elements of the outputs."""
    lower = kind.lower()
    for word, formula in _OUTPUTS.items():
        if word in lower:
            return formula(kind, inputs, flops)
    return _of_product(kind, inputs, flops)


def _of_attention(kind: str, inputs: Shapes, _: float) -> float:
    lower = kind.lower()
    if "backward" not in lower and "grad" not in lower:
        return float(prod(inputs[0][:-1]) * inputs[2][-1])
    first = 1 if kind.startswith("aten") else 0  # the gradient of the output comes before queries, keys and values
    return float(sum(prod(shape) for shape in inputs[first : first + 3]))


def _of_convolution(kind: str, inputs: Shapes, flops: float) -> float | None:
    lower = kind.lower()
    if "backprop" in lower:
        return None  # which of its inputs are only shapes is not known
    if "backward" in lower:
        return float(prod(inputs[1]) + prod(inputs[2]))
    return flops * inputs[1][0] / (2 * prod(inputs[1]))


def _of_linear(_: str, inputs: Shapes, flops: float) -> float:
    return flops / 2 / inputs[1][-1]


def _of_product(kind: str, inputs: Shapes, flops: float) -> float:
    first = _FIRST.get(kind, 0)
    a, b = inputs[first], inputs[first + 1]
    batch = prod(a[:-2]) if any(word in kind for word in _BATCHED) and len(a) > 2 else 1
    return (flops / 2) ** 2 * batch / (prod(a) * prod(b))


_OUTPUTS: dict[str, Callable[[str, Shapes, float], float | None]] = {
    "attention": _of_attention,
    "conv": _of_convolution,
    "dense": _of_linear,
    "linear": _of_linear,
    "addmv": lambda _, inputs, __: float(inputs[1][0]),
    "dot": lambda *_: 1.0,
}
"""Part of a kind (lower case) to the formula; others are products."""
