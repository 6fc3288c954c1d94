"""How much of each call's transmission runs beside kernels that multiply matrices."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.methods.intervals import covered, union
from stepscope.analysis.methods.names import MATRIX, named
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.tables.base import Column

COLUMNS = columns(
    "rank",
    Column("collective", "int64", "Number of the row in `collectives`."),
    Column("matrix_ns", "int64", "Part of the call's transmission in which the rank multiplies matrices."),
    nulls="",
)


@analysis("rank", COLUMNS, together=True)
def matrix_overlap(arrival: pl.DataFrame, kernels: pl.LazyFrame) -> pl.DataFrame:
    """Measure how long kernels that multiply matrices run while each call transmits.

    Returns:
        One row per rank and call of known transmission, in order.
    """
    sent = arrival.filter(pl.col("rank").is_in(ranks_of(kernels)) & pl.col("transmit_ns").is_not_null())
    end = pl.col("end_ns") + pl.col("offset_ns")
    rows = sent.select("rank", "collective", end=end, turn=end - pl.col("transmit_ns")).sort("rank", "collective")
    rows = rows.with_row_index("row")
    computing = kernels.filter(pl.col("kind") == "compute")
    by_type = computing.select("type").drop_nulls().unique().filter(pl.col("type").str.contains(MATRIX))
    types = by_type.collect(engine="streaming")["type"]
    is_matrix = named(computing, is_matrix=pl.col("name").str.contains(MATRIX))["is_matrix"]
    busy = computing.filter(is_matrix | pl.col("type").is_in(types.implode())).select(
        "rank", "start_ns", end_ns=pl.col("start_ns") + pl.col("duration_ns")
    )
    merged = union(busy.collect(), ["rank"])
    since, until = (covered(rows.select("rank", "row", at=at), merged) for at in ("turn", "end"))
    return rows.select("rank", "collective", matrix_ns=until - since)
