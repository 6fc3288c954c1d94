"""How many floating point operations the operators that do most of them made, from the shapes of their inputs.

A multiply and an add are two operations. Counted are the operators that do the work and not those that call them
(`aten::mm`, not `aten::matmul`), so nothing counts twice. The formulas:

* matrix product (m, k) x (k, n): `2 m k n`; of a batch, times its size;
* convolution: `2 |output| |weight| / C_out`, where |x| is the number of elements; each of the two gradients costs the
  same. Which of them was asked for is not recorded; both are assumed, one too many for the first layer;
* attention with q (.., s, d), k (.., t, d), v (.., t, e): `2 s t (d + e)` for each head, and backward five products
  instead of two, as the scores are computed again. Masks are ignored.

They are the ones of "PaLM" (Chowdhery et al., 2022, appendix B) for products and attention, and of the definition of
each operator otherwise; `torch.utils.flop_counter` counts alike. The output of a convolution is taken from its gradient
in the same recording, since strides are not recorded: without a backward pass its count is unknown.
"""

from __future__ import annotations

import json
import re

import polars as pl

from stepscope.analysis.base import analysis
from stepscope.analysis.flop_formulas import COUNTED, Convolutions, Inputs, convolutions

_INSTANCE = re.compile(r"-op\d+$")


@analysis("rank", together=True)
def flops(operators: pl.LazyFrame) -> pl.DataFrame:
    """Count the operations of one call for each operator and shape.

    Returns:
        `rank`, `name`, `input_shapes`, `calls`, `flops` (of one call; null where its shapes do not tell) and
        `total_ns` (host time of all calls), for the operators of `COUNTED` only.
    """
    kinds = pl.col("name").str.split("/").list.last().str.replace(_INSTANCE.pattern, "")
    rows = (
        operators.filter(kinds.is_in(list(COUNTED)) & pl.col("input_shapes").is_not_null())
        .group_by("rank", "name", "input_shapes")
        .agg(calls=pl.len().cast(pl.Int64), total_ns=pl.col("duration_ns").sum())
        .sort("rank", "name", "input_shapes")
        .collect()
    )
    counts: list[int | None] = []
    for part in rows.partition_by("rank", maintain_order=True):
        calls = [(kind_of(name), tensors(shapes)) for name, shapes in part.select("name", "input_shapes").iter_rows()]
        known = convolutions(calls)
        counts += [_count(kind, inputs, known) for kind, inputs in calls]
    return rows.with_columns(pl.Series("flops", counts, pl.Int64)).select(
        "rank", "name", "input_shapes", "calls", "flops", "total_ns"
    )


def kind_of(name: str) -> str:
    """An operator's kind: MindSpore's names carry scopes and an instance number."""
    return _INSTANCE.sub("", name.rsplit("/", 1)[-1])


def tensors(text: str) -> Inputs:
    """The inputs' shapes by position; what is no tensor is empty. Empty altogether where the text is unreadable."""
    try:
        found = json.loads(text)
    except ValueError:
        return []
    if not isinstance(found, list):
        return []
    return [one if isinstance(one, list) and all(type(size) is int for size in one) else [] for one in found]


def _count(kind: str, inputs: Inputs, known: Convolutions) -> int | None:
    """Operations of one call; None where its shapes are not those of its kind."""
    try:
        return COUNTED[kind](inputs, known)
    except (IndexError, ValueError, ZeroDivisionError):
        return None
