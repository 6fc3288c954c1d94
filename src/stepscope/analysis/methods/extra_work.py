"""Work that only some ranks do by design, apart from what is compared."""

from __future__ import annotations

import polars as pl

EXTRA = "extra"
"""Kind of pieces of work of a rank that typical ranks of its program do not do."""


def apart(rows: pl.DataFrame, extra: pl.DataFrame | None) -> pl.DataFrame:
    """Pieces of work of ranks that are compared, those that only they do as of the kind `EXTRA`.

    Args:
        rows: `rank`, `work` and `kind`.
        extra: `extra_pieces`; None if unknown.
    """
    if extra is None or not extra["compared"].any():
        return rows
    found = extra.filter("compared").select("rank", "work", is_extra=pl.lit(value=True))
    marked = rows.join(found, on=["rank", "work"], how="left", maintain_order="left")
    kind = pl.when(pl.col("is_extra") & (pl.col("kind") == "computing")).then(pl.lit(EXTRA)).otherwise("kind")
    return marked.with_columns(kind=kind).drop("is_extra")


def with_extra(excess: pl.DataFrame, cells: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Excess and cells of suspects with what a slow rank loses in work that only it does: it is as much slower at that
    as at what others do as well.

    Args:
        excess: The analysis of that name.
        cells: `suspect`, `rank`, `step`, `kind`.
    """
    if not (excess["kind"] == EXTRA).any():
        return excess, cells
    slow = cells.filter(kind="computing")
    share = excess.filter(kind="computing").select(
        "rank", "step", share=(pl.col("excess_ns") / pl.col("own_ns").clip(lower_bound=1)).clip(lower_bound=0)
    )
    lost = (pl.col("own_ns") * pl.col("share").fill_null(0.0)).round().cast(pl.Int64)
    found = excess.join(share, on=["rank", "step"], how="left", maintain_order="left").with_columns(
        excess_ns=pl.when(kind=EXTRA).then(lost).otherwise("excess_ns")
    )
    return found.drop("share"), pl.concat([cells, slow.with_columns(kind=pl.lit(EXTRA)).select(cells.columns)])
