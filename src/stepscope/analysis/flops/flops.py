"""The FLOPs of the operators that perform most of them, computed from their input shapes.

A multiply and an add are two operations. Only operators that do the work are counted, not those that call them
(`aten::mm`, not `aten::matmul`), so nothing counts twice. A counted operator within another is the same work: Python
code between a call and its operator (a dispatch mode) makes two ranges of it. The formulas:

* matrix product (m, k) x (k, n): `2 m k n`; of a batch, times its size;
* convolution: `2 |output| |weight| / C_out`, where |x| is the number of elements; each of the two gradients costs the
  same. If the recording shows which gradients were requested (PyTorch 2.2 and later, with shapes), only these count;
  else both do, one too many for the first layer;
* attention with q (.., s, d), k (.., t, d), v (.., t, e): `2 s t (d + e)` for each head, and backward five products
  instead of two, as the scores are computed again. Masks are ignored.

Products and attention follow "PaLM" (Chowdhery et al., 2022, appendix B), other operators their definition;
`torch.utils.flop_counter` counts the same way. The output size of a convolution is computed from its strides and
padding if recorded, else taken from its gradient in the same recording.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.flop_convolutions import Call
from stepscope.analysis.methods.flop_formulas import COUNTED, counts
from stepscope.analysis.methods.names import named
from stepscope.analysis.methods.shapes import tensors, values
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column
from stepscope.tables.operators import INSTANCE

KEYS = ("name", "input_shapes", "input_values")
"""Columns that identify a count."""

KIND = pl.col("name").str.split("/").list.last().str.replace(INSTANCE, "")
"""An operator's kind: MindSpore's names carry scopes and an instance number."""


@analysis(
    "rank",
    columns(
        "rank",
        meaning("name", "Name of the operator."),
        "input_shapes",
        Column("input_values", "string", "Values of the inputs, as recorded; for convolutions only."),
        "calls",
        Column("flops", "int64", "Operations of one call; null if its shapes do not show them."),
        meaning("total_ns", "Total host time of all calls."),
    ),
    together=True,
)
def flops(operators: pl.LazyFrame) -> pl.DataFrame:
    """Count the FLOPs of one call of the operators of `COUNTED`: one row per operator, input shapes and values."""
    rows = (
        countable(operators)
        .filter(pl.col("input_shapes").is_not_null())
        .group_by("rank", *KEYS)
        .agg(calls=pl.len().cast(pl.Int64), total_ns=pl.col("duration_ns").sum())
        .sort("rank", *KEYS)
        .collect()
    )
    found: list[int | None] = []
    for part in rows.partition_by("rank", maintain_order=True):
        calls = part.select(KIND, *KEYS[1:]).iter_rows()
        found += counts([Call(kind, tensors(shapes), values(given)) for kind, shapes, given in calls])
    return rows.with_columns(pl.Series("flops", found, pl.Int64)).select("rank", *KEYS, "calls", "flops", "total_ns")


def countable(operators: pl.LazyFrame) -> pl.LazyFrame:
    """The operators that are counted if their shapes are known; of nested ones the outermost."""
    end, place = pl.col("start_ns") + pl.col("duration_ns"), ["rank", "thread"]
    # an operator without shapes does not replace nested ones that have them
    known = pl.col("input_shapes").is_not_null()
    reach = pl.when(known).then(end).cum_max().forward_fill().shift(1).over(place)
    within = (end <= reach) & pl.col("thread").is_not_null() & (pl.col("duration_ns") > 0)
    ordered = operators.filter(named(operators, counted=KIND.is_in(list(COUNTED)))["counted"]).sort(
        *place, "start_ns", "duration_ns", "slice", descending=[False, False, False, True, False]
    )
    return ordered.filter(~within.fill_null(False))
