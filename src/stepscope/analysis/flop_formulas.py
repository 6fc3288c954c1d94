"""The formulas of `flops`: operations of one call from the shapes of its inputs, by kind of operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import prod
from typing import TypeVar

Shape = list[int]
Inputs = list[Shape]
Key = TypeVar("Key")

_GRADIENTS = {
    "aten::convolution_backward": (0, 1, 2),
    "aten::cudnn_convolution_backward": (1, 0, 2),
    "aten::miopen_convolution_backward": (1, 0, 2),
}
"""Places of the gradient of the output, the input and the weight."""


@dataclass(frozen=True)
class Convolutions:
    """What gradients tell of the convolutions of a recording; None where several differ.

    Args:
        outputs: Input and weight to output.
        weights: Input and output channels to weight (MindSpore's gradient of the filter does not have it).
        by_channels: Input and output channels to output.
    """

    outputs: dict[tuple[str, str], Shape | None] = field(default_factory=dict)
    weights: dict[tuple[str, int], Shape | None] = field(default_factory=dict)
    by_channels: dict[tuple[str, int], Shape | None] = field(default_factory=dict)


def convolutions(calls: Iterable[tuple[str, Inputs]]) -> Convolutions:
    """Collect what gradients tell.

    Args:
        calls: Kind and inputs of all operators that are counted.
    """
    known = Convolutions()
    for kind, inputs in calls:
        if kind in _GRADIENTS and len(inputs) >= 3 and all(inputs[:3]):
            grad, data, weight = (inputs[place] for place in _GRADIENTS[kind])
            _note(known.outputs, (str(data), str(weight)), grad)
        elif kind == "Conv2D" and len(inputs) >= 2 and all(inputs[:2]):
            _note(known.weights, (str(inputs[0]), inputs[1][0]), inputs[1])
        elif kind == "Conv2DBackpropFilter" and len(inputs) >= 2 and len(inputs[0]) > 1:
            _note(known.by_channels, (str(inputs[1]), inputs[0][1]), inputs[0])
    return known


def _note(known: dict[Key, Shape | None], key: Key, shape: Shape) -> None:
    known[key] = shape if known.get(key, shape) == shape else None


def _product(a: Shape, b: Shape) -> int:
    """Of two matrices, or of two batches of them; either may be stored transposed, as MindSpore does not tell."""
    if a[:-2] != b[:-2]:
        raise ValueError
    (m, k), (p, n) = a[-2:], b[-2:]
    for shared, others in (((k, p), (m, n)), ((k, n), (m, p)), ((m, p), (k, n)), ((m, n), (k, p))):
        if shared[0] == shared[1]:
            return 2 * prod(a[:-2]) * shared[0] * prod(others)
    raise ValueError


def _dense(data: Shape, weight: Shape) -> int:
    n, k = weight
    if data[-1] != k:
        raise ValueError
    return 2 * prod(data) * n


def _convolution(output: Shape | None, data: Shape, weight: Shape) -> int | None:
    """Of the forward pass; a transposed one has its weight's first size in its input's channels."""
    if output is None or len(weight) < 3:
        return None
    transposed = output[1] != weight[0] or (data[1] == weight[0] and prod(output[2:]) > prod(data[2:]))
    return 2 * prod(data if transposed else output) * prod(weight[1:])


def _both_gradients(inputs: Inputs) -> int | None:
    one = _convolution(inputs[0], inputs[1], inputs[2])
    return None if one is None else 2 * one


def _filter_gradient(inputs: Inputs, known: Convolutions) -> int | None:
    weight = known.weights.get((str(inputs[1]), inputs[0][1]))
    return None if weight is None else 2 * prod(inputs[0]) * prod(weight[1:])


def _conv2d(inputs: Inputs, known: Convolutions) -> int | None:
    return _convolution(known.by_channels.get((str(inputs[0]), inputs[1][0])), inputs[0], inputs[1])


def _attention(q: Shape, k: Shape, v: Shape) -> tuple[int, int]:
    """Of the scores and of their product with the values."""
    heads = prod(q[:-2])
    return 2 * heads * q[-2] * k[-2] * q[-1], 2 * heads * q[-2] * k[-2] * v[-1]


def _attention_backward(inputs: Inputs) -> int:
    scores, values = _attention(inputs[1], inputs[2], inputs[3])
    return 3 * scores + 2 * values


Formula = Callable[[Inputs, Convolutions], "int | None"]

_FORWARD_ATTENTION = (
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_cudnn_attention",
)

COUNTED: dict[str, Formula] = {
    **dict.fromkeys(("aten::mm", "aten::bmm", "aten::_int_mm", "aten::_scaled_mm"), lambda i, _: _product(i[0], i[1])),
    **dict.fromkeys(
        ("aten::addmm", "aten::addmm_", "aten::baddbmm", "aten::baddbmm_", "aten::_addmm_activation"),
        lambda i, _: _product(i[1], i[2]),
    ),
    **dict.fromkeys(("aten::addmv", "aten::addmv_"), lambda i, _: 2 * prod(i[1])),
    **dict.fromkeys(("aten::dot", "aten::vdot"), lambda i, _: 2 * prod(i[0])),
    "aten::mkldnn_linear": lambda i, _: _dense(i[0], i[1]),
    "aten::convolution": lambda i, known: _convolution(known.outputs.get((str(i[0]), str(i[1]))), i[0], i[1]),
    **dict.fromkeys(_GRADIENTS, lambda i, _: _both_gradients([i[0], i[1], i[2]])),
    **dict.fromkeys(_FORWARD_ATTENTION, lambda i, _: sum(_attention(i[0], i[1], i[2]))),
    **dict.fromkeys((f"{name}_backward" for name in _FORWARD_ATTENTION), lambda i, _: _attention_backward(i)),
    **dict.fromkeys(
        ("MatMul", "BatchMatMul", "MatMulV2", "BatchMatMulV2", "MatMulBiasAddFusion", "MatMulExt", "BatchMatMulExt"),
        lambda i, _: _product(i[0], i[1]),
    ),
    "Dense": lambda i, _: _dense(i[0], i[1]),
    "Conv2D": _conv2d,
    "Conv2DBackpropInput": lambda i, _: 2 * prod(i[0]) * prod(i[1][1:]) if len(i[1]) == 4 else None,
    "Conv2DBackpropFilter": _filter_gradient,
}
"""Kind to formula; the first are PyTorch's, the last MindSpore's."""
