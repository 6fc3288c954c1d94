"""Operators of a job grouped by type, few enough to draw: what both figures of operators show."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.operators.operator_shares import KINDS
from stepscope.figures.base import Data, Rows, column
from stepscope.pages.short_names import readable
from stepscope.texts import Text

OTHERS = "…"
"""Name of the row that stands for all that are left out."""

COLUMNS = (
    column("kind", "kind", "Kind of work.", values=KINDS),
    column("type", "type", "Operator type."),
    column("name", "name", "Name of the kernel or operator."),
    column("total_ns", "total", "Total time on all ranks.", "int64"),
    column("share_ratio", "share", "Share of the time of all rows.", "float64"),
    column("count", "calls", "Number of calls.", "int64"),
    column("max_rank", "most on", "Rank with most of it.", "int32"),
    column("max_ns", "most", "How much that is.", "int64"),
)


def most(rows: pl.DataFrame, at_most: int, *, rest: bool) -> Data:
    """The rows with most time, those of a name together; with `rest`, a row for all others of each kind."""
    shown = rows.head(at_most)
    left = rows.slice(at_most)
    notes = []
    if left.height:
        share = f"{left['share_ratio'].sum():.1%}"
        notes.append(
            Text(
                f"{at_most} of {rows.height} operators, those with most time; the others take {share}.",
                f"共 {rows.height} 个算子，这里是耗时最多的 {at_most} 个，其余共占 {share}。",
            )
        )
        if rest:
            others = left.group_by("kind", maintain_order=True).agg(
                pl.col("total_ns", "share_ratio", "count").sum(), number=pl.len()
            )
            named = others.with_columns(
                type=pl.lit(None, pl.String),
                name=pl.lit(OTHERS),
                max_rank=pl.lit(None, pl.Int32),
                max_ns=pl.lit(None, pl.Int64),
            )
            shown = pl.concat([shown, named.select(shown.drop("ranks").columns)], how="diagonal_relaxed")
    return Data([Rows(shown, COLUMNS)], notes)


def names_of(rows: pl.DataFrame) -> list[str]:
    """Names as people read them, which differ where the recorded ones do."""
    return readable(rows.select(name=pl.col("name").fill_null("-")))["name"].to_list()
