"""Operations of convolutions: `2 |output| |weight| / C_out`, where |x| is the number of elements, and for gradients.

The output size is computed from strides and padding if recorded, else taken from the gradient of the same convolution
in the same recording.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeVar

from stepscope.analysis.methods.shapes import Shape, Shapes

Key = TypeVar("Key")

FORWARD = "aten::convolution"

GRADIENTS = {
    "aten::convolution_backward": (0, 1, 2),
    "aten::cudnn_convolution_backward": (1, 0, 2),
    "aten::miopen_convolution_backward": (1, 0, 2),
}
"""Positions of the output's gradient, the input and the weight among the inputs."""

STRIDE, PADDING, DILATION, TRANSPOSED = 3, 4, 5, 6
"""Positions of the inputs of `FORWARD` that are not tensors."""


@dataclass(frozen=True)
class Call:
    """One call of an operator that is counted.

    Args:
        kind: Kind of operator.
        inputs: Shapes of its inputs by position.
        values: Inputs that are not tensors, by position; empty if not recorded.
        outputs: Shapes of its outputs; empty if not recorded.
    """

    kind: str
    inputs: Shapes
    values: list[Any] = field(default_factory=list)
    outputs: Shapes = field(default_factory=list)


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


def convolutions(calls: Iterable[Call]) -> Convolutions:
    """Collect the shapes that the gradients among all counted calls reveal."""
    known = Convolutions()
    for call in calls:
        kind, inputs = call.kind, call.inputs
        if kind in GRADIENTS and len(inputs) >= 3 and all(inputs[:3]):
            grad, data, weight = (inputs[place] for place in GRADIENTS[kind])
            _note(known.outputs, (str(data), str(weight)), grad)
        elif kind == "Conv2D" and len(inputs) >= 2 and all(inputs[:2]):
            _note(known.weights, (str(inputs[0]), inputs[1][0]), inputs[1])
        elif kind == "Conv2DBackpropFilter" and len(inputs) >= 2 and len(inputs[0]) > 1:
            _note(known.by_channels, (str(inputs[1]), inputs[0][1]), inputs[0])
    return known


def _note(known: dict[Key, Shape | None], key: Key, shape: Shape) -> None:
    known[key] = shape if known.get(key, shape) == shape else None


def forward(call: Call, known: Convolutions) -> int | None:
    """Of PyTorch's forward pass."""
    data, weight = call.inputs[:2]
    output = known.outputs.get((str(data), str(weight)))
    if len(call.values) > TRANSPOSED and isinstance(call.values[TRANSPOSED], bool):
        if call.values[TRANSPOSED]:
            return 2 * prod(data) * prod(weight[1:])
        output = _output(data, weight, call.values)
    return _count(output, data, weight)


def backward(call: Call, _: Convolutions) -> int | None:
    """Of PyTorch's gradients: each costs as much as the forward pass. Both count unless the call shows which it
    requests."""
    grad, data, weight = (call.inputs[place] for place in GRADIENTS[call.kind])
    one = _count(grad, data, weight)
    mask = call.values[-1] if call.values else None
    asked = sum(mask[:2]) if isinstance(mask, list) and all(isinstance(each, bool) for each in mask) else 2
    return None if one is None else asked * one


def conv2d(call: Call, known: Convolutions) -> int | None:
    """Of MindSpore's forward pass."""
    data, weight = call.inputs[:2]
    output = call.outputs[0] if call.outputs else known.by_channels.get((str(data), weight[0]))
    return _count(output, data, weight)


def filter_gradient(call: Call, known: Convolutions) -> int | None:
    """Of MindSpore's gradient of the weight."""
    weight = known.weights.get((str(call.inputs[1]), call.inputs[0][1]))
    return None if weight is None else 2 * prod(call.inputs[0]) * prod(weight[1:])


def input_gradient(call: Call, _: Convolutions) -> int | None:
    """Of MindSpore's gradient of the input."""
    grad, weight = call.inputs[:2]
    return 2 * prod(grad) * prod(weight[1:]) if len(weight) == 4 else None


def _output(data: Shape, weight: Shape, given: list[Any]) -> Shape:
    """Batch, channels and, of each dimension, `(size + 2 padding - dilation (kernel - 1) - 1) / stride + 1`.

    Raises:
        ValueError: If the values do not fit the shapes.
    """
    space = len(weight) - 2
    stride, padding, dilation = (_each(given[place], space) for place in (STRIDE, PADDING, DILATION))
    if len(data) != space + 2 or 0 in stride:
        raise ValueError
    sizes = [
        (size + 2 * p - d * (kernel - 1) - 1) // s + 1
        for size, kernel, s, p, d in zip(data[2:], weight[2:], stride, padding, dilation, strict=True)
    ]
    if min(sizes) < 0:
        raise ValueError
    return [data[0], weight[0], *sizes]


def _each(value: Any, dimensions: int) -> list[int]:
    """One number per dimension; a single number applies to all."""
    if not isinstance(value, list) or not all(type(one) is int for one in value) or len(value) not in (1, dimensions):
        raise ValueError
    return value * dimensions if len(value) == 1 else value


def _count(output: Shape | None, data: Shape, weight: Shape) -> int | None:
    """Of the forward pass; a transposed one has its weight's first size in its input's channels."""
    if output is None or len(weight) < 3:
        return None
    transposed = output[1] != weight[0] or (data[1] == weight[0] and prod(output[2:]) > prod(data[2:]))
    return 2 * prod(data if transposed else output) * prod(weight[1:])
