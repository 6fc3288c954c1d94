"""Arithmetic on time ranges: how long kinds of work are active, alone and together, in each window.

A single sweep computes all overlaps without joins: sort the range ends, count the open ranges of each layer, and sum
the pieces between neighbouring ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

WINDOW = "window"


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
    parts = [_ends(ranges, number, by) for number, ranges in enumerate(layers.values(), 1)]
    parts.append(_window_ends(windows, len(names) + 1, by))
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
    reach = pl.col("end_ns").cum_max().shift(1)
    return (
        ranges.select(*by, "start_ns", "end_ns")
        .filter(pl.col("end_ns") > pl.col("start_ns"))
        .sort(*by, "start_ns")
        .with_columns(reach=reach.over(by) if by else reach)
        .with_columns(block=(pl.col("start_ns") > pl.col("reach")).fill_null(True).cum_sum())
        .group_by("block", maintain_order=True)
        .agg(pl.col(by).first(), pl.col("start_ns").first(), pl.col("end_ns").max())
        .select(*by, "start_ns", "end_ns")
    )


def _ends(ranges: pl.LazyFrame, number: int, by: Sequence[str]) -> pl.LazyFrame:
    """Both ends of each range of a layer."""
    valid = ranges.filter(pl.col("end_ns") > pl.col("start_ns"))
    return pl.concat(
        valid.select(*by, at=pl.col(side).cast(pl.Int64), end=pl.lit(end, pl.Int8), window=pl.lit(None, pl.Int64))
        for side, end in (("start_ns", number), ("end_ns", -number))
    )


def _window_ends(windows: pl.LazyFrame, number: int, by: Sequence[str]) -> pl.LazyFrame:
    """Both ends of each window, all closings before all openings: its number at the start, -1 (outside) at the end."""
    valid = windows.filter(pl.col("end_ns") > pl.col("start_ns"))
    opening = valid.select(
        *by, at=pl.col("start_ns").cast(pl.Int64), end=pl.lit(number, pl.Int8), window=pl.col(WINDOW).cast(pl.Int64)
    )
    closing = valid.select(
        *by, at=pl.col("end_ns").cast(pl.Int64), end=pl.lit(-number, pl.Int8), window=pl.lit(-1, pl.Int64)
    )
    return pl.concat([closing, opening])
