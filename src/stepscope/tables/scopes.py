"""MindSpore's names of operators are places in the model, e.g. `Default/fc-Dense/MatMul-op3`.

The first part is the graph that it belongs to; PyNative has its backward pass in `Bprop`, graphs in `Gradients`.
"""

from __future__ import annotations

BACKWARD = r"^(Gradients|Bprop)/"
"""Operators of the backward pass."""

OPTIMIZER_SCOPE = r"/optimizer-\w+/"
"""Operators of an optimizer."""

INSTANCE = r"-op\d+$"
"""Number of an operator, after its type."""

PLACE = rf"^(Default|Gradients|Bprop|Expand|recompute_\w+)/|/[^/]*{INSTANCE}"
"""Names that are places in the model."""
