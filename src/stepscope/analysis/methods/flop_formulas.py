"""The formulas of `flops`: operations of one call from the shapes of its inputs, by kind of operator."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt, prod

from stepscope.analysis.methods import flop_convolutions as conv
from stepscope.analysis.methods.flop_convolutions import Call, Convolutions, convolutions
from stepscope.analysis.methods.shapes import Shape

LARGEST = 2**63 - 1
"""Largest number that the column can hold: a device with 10^16 FLOP/s takes a quarter of an hour for it."""

Formula = Callable[[Call, Convolutions], "int | None"]


def _product(a: Shape, b: Shape) -> int:
    """Of two matrices or batches of matrices; either may be transposed, which MindSpore does not record."""
    if a[:-2] != b[:-2]:
        raise ValueError
    (m, k), (p, n) = a[-2:], b[-2:]
    for shared, others in (((k, p), (m, n)), ((k, n), (m, p)), ((m, p), (k, n)), ((m, n), (k, p))):
        if shared[0] == shared[1]:
            return 2 * prod(a[:-2]) * shared[0] * prod(others)
    raise ValueError


def _matmul(call: Call, _: Convolutions) -> int:
    """Of a matrix product on a device; its output shows which sizes are shared, however the inputs are stored.

    The sizes of a (m, k), b (k, n) and the output (m, n) make `|a| |b| |output| = (m k n)^2`, for tiled formats too.
    """
    a, b = call.inputs[:2]
    if not a or not b:
        raise ValueError
    if call.outputs and len(call.outputs[0]) == 2:
        square = prod(a) * prod(b) * prod(call.outputs[0])
        if isqrt(square) ** 2 == square:
            return 2 * isqrt(square)
    return _product(a, b)


def _dense(call: Call, _: Convolutions) -> int:
    data, (n, k) = call.inputs[:2]
    if data[-1] != k:
        raise ValueError
    return 2 * prod(data) * n


def _attention(q: Shape, k: Shape, v: Shape) -> tuple[int, int]:
    """Of the scores and of their product with the values."""
    heads = prod(q[:-2])
    return 2 * heads * q[-2] * k[-2] * q[-1], 2 * heads * q[-2] * k[-2] * v[-1]


def _attention_forward(call: Call, _: Convolutions) -> int:
    return sum(_attention(*call.inputs[:3]))


def _attention_backward(call: Call, _: Convolutions) -> int:
    scores, values = _attention(*call.inputs[1:4])
    return 3 * scores + 2 * values


def _sequence_attention(call: Call, _: Convolutions) -> int:
    """Of an Ascend device: q and k are (sequence, batch, heads x size) or (batch, sequence, heads x size).

    The softmax sums (batch, heads, sequence, 8) among the outputs of the forward pass show which; without them, the
    longer one is taken as the sequence. With four dimensions, they are (batch, heads, sequence, size).
    """
    q, k = call.inputs[:2]
    if len(q) == 4 and len(k) == 4:
        return 4 * prod(q[:2]) * q[2] * k[2] * q[3]
    if len(q) != 3 or len(k) != 3:
        raise ValueError
    softmax = call.outputs[0] if call.outputs and len(call.outputs[0]) == 4 else []
    place = q.index(softmax[2], 0, 2) if softmax and softmax[2] != softmax[0] else int(q[1] > q[0])
    return 4 * prod(q) * k[place]


def _sequence_attention_backward(call: Call, known: Convolutions) -> int:
    """Five products instead of two; its outputs are gradients, which do not show the sequence."""
    return _sequence_attention(Call(call.kind, call.inputs), known) * 5 // 2


_FORWARD_ATTENTION = (
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_cudnn_attention",
)

COUNTED: dict[str, Formula] = {
    **dict.fromkeys(
        ("aten::mm", "aten::bmm", "aten::_int_mm", "aten::_scaled_mm"),
        lambda call, _: _product(call.inputs[0], call.inputs[1]),
    ),
    **dict.fromkeys(
        ("aten::addmm", "aten::addmm_", "aten::baddbmm", "aten::baddbmm_", "aten::_addmm_activation"),
        lambda call, _: _product(call.inputs[1], call.inputs[2]),
    ),
    **dict.fromkeys(("aten::addmv", "aten::addmv_"), lambda call, _: 2 * prod(call.inputs[1])),
    **dict.fromkeys(("aten::dot", "aten::vdot"), lambda call, _: 2 * prod(call.inputs[0])),
    "aten::mkldnn_linear": _dense,
    conv.FORWARD: conv.forward,
    **dict.fromkeys(conv.GRADIENTS, conv.backward),
    **dict.fromkeys(_FORWARD_ATTENTION, _attention_forward),
    **dict.fromkeys((f"{name}_backward" for name in _FORWARD_ATTENTION), _attention_backward),
    **dict.fromkeys(
        ("MatMul", "MatMulV2", "MatMulV3", "MatMulBiasAddFusion", "MatMulExt", "MatMulCommon", "GEMM"), _matmul
    ),
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "BatchMatMulExt"), _matmul),
    "Dense": _dense,
    **dict.fromkeys(("Conv2D", "Conv2DV2"), conv.conv2d),
    "Conv2DBackpropInput": conv.input_gradient,
    "Conv2DBackpropFilter": conv.filter_gradient,
    "FlashAttentionScore": _sequence_attention,
    "FlashAttentionScoreGrad": _sequence_attention_backward,
}
"""Kind to formula: PyTorch's operators, then MindSpore's and those of Ascend devices."""


def count(call: Call, known: Convolutions) -> int | None:
    """FLOPs of one call; None if its shapes do not fit its kind, or the number is more than any device can do."""
    try:
        found = COUNTED[call.kind](call, known)
    except (IndexError, ValueError, ZeroDivisionError, TypeError):
        return None
    is_unknown = any(size < 0 for shape in (*call.inputs, *call.outputs) for size in shape)
    return found if found is not None and 0 <= found <= LARGEST and not is_unknown else None


def counts(calls: list[Call]) -> list[int | None]:
    """FLOPs of each call of one recording."""
    known = convolutions(calls)
    return [count(call, known) for call in calls]
