"""Arithmetic on time ranges: how long kinds of work are active, alone and together, in each window.

A single sweep computes all overlaps without joins: sort the range ends, count the open ranges of each layer, and sum
the pieces between neighbouring ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import polars as pl

Rows = TypeVar("Rows", pl.DataFrame, pl.LazyFrame)

WINDOW = "window"

END = pl.col("start_ns") + pl.col("duration_ns")
"""The end of a range of which start and duration are known."""


def pieces(layers: Mapping[str, pl.LazyFrame], windows: pl.LazyFrame, by: Sequence[str] = ()) -> pl.LazyFrame:
    """Cut the windows into pieces in which the set of active layers does not change.

    Args:
        layers: Name to ranges (`start_ns`, `end_ns`), which may overlap.
        windows: Disjoint ranges with an integer `window`, `start_ns`, `end_ns`.
        by: Columns of layers and windows, e.g. the rank, whose values are swept independently.

    Returns:
        `by`, `window`, `start_ns`, `duration_ns` (above 0) and one Boolean column for each layer. The pieces of a
        window sum to its length.

    Examples:
        >>> ranges = pl.LazyFrame({"start_ns": [0, 4], "end_ns": [6, 8]})
        >>> windows = pl.LazyFrame({"window": [0], "start_ns": [2], "end_ns": [10]})
        >>> pieces({"busy": ranges}, windows).select("duration_ns", "busy").collect().rows()
        [(2, True), (2, True), (2, True), (2, False)]
    """
    names = list(layers)
    # Each end carries the number of its layer, positive if it opens and negative if it closes; windows are numbered
    # after the layers. This keeps the sorted rows small.
    same = pl.lit(None, pl.Int64)
    parts = [_ends(ranges, number, by, same, same) for number, ranges in enumerate(layers.values(), 1)]
    parts.append(_ends(windows, len(names) + 1, by, pl.col(WINDOW).cast(pl.Int64), pl.lit(-1, pl.Int64)))
    # Among equal times, a window has to close before the next one opens, as listed in the last part; other ends may
    # come in any order. So no other sort key is needed, which would take most of the time. Where one value of `by`
    # ends, all its ranges and windows are closed, so the sums below just go on.
    swept = pl.concat(parts).sort(*by, "at", maintain_order=True)
    opened = (
        ((pl.col("end") == number).cast(pl.Int32) - (pl.col("end") == -number).cast(pl.Int32)).cum_sum() > 0
        for number in range(1, len(names) + 1)
    )
    cut = swept.with_columns(
        *(is_open.alias(name) for name, is_open in zip(names, opened, strict=True)),
        pl.col(WINDOW).forward_fill(),
        duration_ns=pl.col("at").shift(-1) - pl.col("at"),
    )
    inside = (pl.col(WINDOW) >= 0) & (pl.col("duration_ns") > 0)
    return cut.filter(inside).select(*by, WINDOW, pl.col("at").alias("start_ns"), "duration_ns", *names)


def union(ranges: pl.LazyFrame, by: Sequence[str] = ()) -> pl.LazyFrame:
    """Merge ranges (`start_ns`, `end_ns`) that touch or overlap. The result is sorted and disjoint.

    Args:
        ranges: Any ranges.
        by: Columns, e.g. the rank; only ranges with equal values are merged.
    """
    reach = pl.col("end_ns").cum_max()
    ordered = (
        ranges.select(*by, "start_ns", "end_ns")
        .filter(pl.col("end_ns") > pl.col("start_ns"))
        .sort(*by, "start_ns")
        .with_columns(reach=reach.over(by) if by else reach)
    )
    before = pl.col("reach").shift(1)
    opens = (pl.col("start_ns") > (before.over(by) if by else before)).fill_null(True)
    # How far all ranges so far reach is, at the last range of a block, the end of the block.
    return ordered.with_columns(opens=opens).select(
        pl.col(*by, "start_ns").filter("opens"),
        end_ns=pl.col("reach").filter(pl.col("opens").shift(-1, fill_value=True)),
    )


def with_last(rows: Rows, ranges: Rows, *more: str, at: str = "start_ns") -> Rows:
    """Join each row with the last of its rank's ranges that starts at or before it.

    Args:
        rows: `rank` and the time.
        ranges: `rank`, `start_ns`, `end_ns` and more; of those that start together, the last counts.
        more: Columns of the ranges to add.
        at: The column with the time.

    Returns:
        The rows in order of time, with those columns and `until_ns`, the range's end; null if there is no range.
    """
    named = {at: pl.col("start_ns"), "until_ns": pl.col("end_ns")}
    bounds = ranges.sort("start_ns", maintain_order=True).select("rank", *more, **named)
    return rows.sort(at, maintain_order=True).join_asof(bounds, on=at, by="rank", check_sortedness=False)


def starting_in(rows: Rows, ranges: Rows, *more: str, at: str = "start_ns") -> Rows:
    """The rows that start inside their rank's ranges, as `with_last` joins them."""
    return with_last(rows, ranges, *more, at=at).filter(pl.col(at) < pl.col("until_ns"))


def outside(rows: Rows, ranges: Rows) -> Rows:
    """The rows that start outside their rank's ranges, which are disjoint."""
    last = with_last(rows, ranges)
    return last.filter(pl.col("until_ns").is_null() | (pl.col("start_ns") >= pl.col("until_ns"))).drop("until_ns")


def _ends(ranges: pl.LazyFrame, number: int, by: Sequence[str], opens: pl.Expr, closes: pl.Expr) -> pl.LazyFrame:
    """Both ends of each range, all closings before all openings, with what `window` becomes there (null: unchanged)."""
    valid = ranges.filter(pl.col("end_ns") > pl.col("start_ns"))
    return pl.concat(
        valid.select(*by, at=pl.col(side).cast(pl.Int64), end=pl.lit(end, pl.Int8), window=window)
        for side, end, window in (("end_ns", -number, closes), ("start_ns", number, opens))
    )
