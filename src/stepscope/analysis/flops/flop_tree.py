"""The FLOPs of each part of the model, as a tree of scopes."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import FLOP_SCOPES
from stepscope.tables.base import Column

ROOT = "Total"


NO_TREE = "no tree of scopes was recorded, and operators have no recorded position in the model"


@analysis(
    "rank",
    columns(
        "rank",
        Column("parent", "string", "Parent scope; null for the root.", importance=21),
        Column("scope", "string", "Scope; `Total` is the root."),
        meaning("name", "Last part of the scope."),
        meaning("flops", "FLOPs of all calls within the scope."),
        meaning("share_ratio", "Share of the parent's FLOPs."),
        meaning("found_by", "Where the tree comes from: `stated` by the source, or summed from `operators`."),
        keep="scope flops share_ratio parent",
        titles={"flops": "FLOPs in total", "share_ratio": "share of parent"},
    ),
    together=True,
    nothing=NO_TREE,
)
def flop_tree(flop_scopes: pl.LazyFrame | None, operator_flops: pl.DataFrame | None) -> pl.DataFrame:
    """Sum FLOPs by scope, from the whole model down to the operators' scopes: one row per scope.

    A stated tree (`flop_scopes`) is used unchanged. For other ranks, the operators' positions in the model are the
    scopes, each with its full path and the FLOPs of all calls. An operator without a position is a scope of its own, so
    that the total covers all operators.

    Raises:
        Unavailable: If there is no tree, and the operators' positions are unknown.
    """
    stated = FLOP_SCOPES.or_empty(flop_scopes).select("rank", "parent", "scope", "flops").collect()
    parts = [stated.with_columns(name="scope", found_by=pl.lit("stated"))]
    if operator_flops is not None:
        known = operator_flops.filter(pl.col("flops").is_not_null())
        parts.append(_of_operators(known.join(stated, on="rank", how="anti")))
    found = pl.concat(parts, how="diagonal")
    if found.is_empty():
        raise Unavailable(NO_TREE)
    parents = found.group_by("rank", scope="parent").agg(children=pl.col("flops").sum())
    own = found.group_by("rank", "scope").agg(own=pl.col("flops").first())
    whole = parents.join(own, on=["rank", "scope"], how="left")
    total = pl.coalesce("own", "children")
    return (
        found.join(whole.select("rank", total.alias("whole"), parent="scope"), on=["rank", "parent"], how="left")
        .with_columns(share_ratio=pl.when(pl.col("whole") > 0).then(pl.col("flops") / pl.col("whole")))
        .select("rank", "parent", "scope", "name", "flops", "share_ratio", "found_by")
        .sort("rank", "parent", "flops", "scope", descending=[False, False, True, False])
    )


def _of_operators(operators: pl.DataFrame) -> pl.DataFrame:
    """Each scope of each operator with the sum of its contents, for ranks whose operators have a position; operators
    without one are scopes of their own below the root."""
    parts = pl.coalesce(pl.col("full_name").str.split("/"), pl.concat_list("name"))
    depths = (
        operators.filter(pl.col("full_name").is_not_null().any().over("rank"))
        .select(
            "rank",
            (pl.col("flops") * pl.col("count")).alias("flops"),
            parts=parts,
            depth=pl.int_ranges(1, parts.list.len() + 1),
        )
        .explode("depth")
    )
    path = pl.col("parts").list.head(pl.col("depth")).list.join("/")
    above = pl.col("parts").list.head(pl.col("depth") - 1).list.join("/")
    return (
        depths.with_columns(
            scope=path,
            parent=pl.when(pl.col("depth") == 1).then(pl.lit(ROOT)).otherwise(above),
            name=pl.col("parts").list.get(pl.col("depth") - 1),
        )
        .group_by("rank", "parent", "scope", "name")
        .agg(pl.col("flops").sum())
        .with_columns(found_by=pl.lit("operators"))
    )
