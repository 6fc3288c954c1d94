"""What the classic files call an operator: its type, its short name, and its full name with the scopes around it.

MindSpore's operators carry their scopes (`Default/network-.../MatMul-op3`). PyTorch's do not: here the scopes are the
modules around a call, if Python calls were recorded (`with_stack`), and the operators around it, as in
`Default/Net_0/Linear_1/aten::linear/aten::addmm`. What runs below the autograd engine is of the subgraph `Gradients`.
"""

from __future__ import annotations

import re

import polars as pl

from stepscope.export.rank_export import RankExport
from stepscope.tables.operators import INSTANCE

MODULE = "nn.Module: "
AUTOGRAD = "autograd::engine::evaluate_function: "
_BACKWARD = re.compile(rf"^{AUTOGRAD}|Backward\d*$")
"""Older versions of PyTorch recorded the node alone, without the engine's call of it."""
_SUBGRAPHS = ("Default", "Gradients", "recompute_Default")


def named_operators(export: RankExport) -> pl.LazyFrame:
    """The operators of a rank with their names.

    Returns:
        The columns of `operators`, and `full_name`, `op_name` (last part of it), `op_type` (without the instance
        number) and `subgraph`.
    """
    operators = export.lazy("operators")
    own = pl.col("name") if export.is_mindspore else "Default/" + pl.col("name")
    if export.is_mindspore or not export.run.has("slices"):
        named = operators.with_columns(full_name=own)
    else:
        names = export.run.analyse(_full_names).lazy()
        named = operators.join(names, on="slice", how="left", maintain_order="left")
        named = named.with_columns(pl.col("full_name").fill_null(own))
    full_name = pl.col("full_name").str.replace_all(";", ",", literal=True)
    op_name = full_name.str.split("/").list.last() if export.is_mindspore else pl.col("name")
    first = full_name.str.split("/").list.first()
    return named.with_columns(
        full_name=full_name,
        op_name=op_name,
        op_type=op_name.str.replace(INSTANCE, ""),
        subgraph=pl.when(first.is_in(_SUBGRAPHS)).then(first).otherwise(pl.lit(_SUBGRAPHS[0])),
    )


def _full_names(slices: pl.LazyFrame) -> pl.DataFrame:
    """`slice` and `full_name` of the operators, from the outside one depth after the other."""
    ranges = (
        slices.filter(pl.col("depth").is_not_null()).select("slice", "parent", "depth", "name", "category").collect()
    )
    paths = list(_SUBGRAPHS[:1])
    outer = pl.DataFrame(schema={"slice": pl.Int64, "path": pl.Int64})
    found = [outer]
    for _, level in sorted(ranges.partition_by("depth", as_dict=True).items()):
        inner = _extended(level, outer, paths)
        outer = inner.select("slice", "path")
        found.append(inner.filter(pl.col("category") == "operator").select("slice", "path"))
    named = pl.concat(found)
    return named.select("slice", full_name=pl.Series(paths).gather(named["path"]))


def _extended(level: pl.DataFrame, outer: pl.DataFrame, paths: list[str]) -> pl.DataFrame:
    """The slices of one depth with the numbers of their paths, given those one further out; adds to `paths`."""
    joined = level.join(outer, left_on="parent", right_on="slice", how="left").with_columns(pl.col("path").fill_null(0))
    label = (
        pl.when(pl.col("category") == "operator")
        .then(pl.col("name").str.replace_all("/", "|", literal=True))
        .when((pl.col("category") == "python") & pl.col("name").str.starts_with(MODULE))
        .then(pl.col("name").str.strip_prefix(MODULE))
    )
    joined = joined.with_columns(label=label)
    new = joined.filter(pl.col("label").is_not_null()).select("path", "label").unique(maintain_order=True)
    numbers = []
    for path, text in new.iter_rows():
        numbers.append(len(paths))
        base = "Gradients" if path == 0 and _BACKWARD.search(text) else paths[path]
        paths.append(f"{base}/{text.removeprefix(AUTOGRAD)}")
    new = new.with_columns(pl.Series("longer", numbers, pl.Int64))
    return joined.join(new, on=["path", "label"], how="left").with_columns(path=pl.coalesce("longer", "path"))
