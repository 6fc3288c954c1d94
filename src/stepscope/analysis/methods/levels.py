"""Levels that go up and down over time, from their changes: how many launches wait, how many bytes a second move."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

AT = "at_ns"


def levels(changes: pl.DataFrame, keys: Sequence[str], down_first: bool = False) -> pl.DataFrame:
    """The level after each change, and how long it lasts.

    Args:
        changes: `keys`, `at_ns` and `change`, by how much the level goes up there (or down, if below 0).
        keys: What has a level of its own; the first is the rank.
        down_first: Whether of changes at the same time those that go down come first, as where one use ends and the
            next one begins. Else those that go up do, as of what comes and leaves at once.

    Returns:
        `keys`, `at_ns`, `level` and `duration_ns` until the next change (0 after the last one), in order.
    """
    falling = [*([False] * len(keys)), False, not down_first]
    ordered = changes.sort(*keys, AT, "change", descending=falling, nulls_last=True)
    until = pl.col(AT).shift(-1).over(keys)
    return ordered.select(
        *keys,
        AT,
        level=pl.col("change").cum_sum().over(keys),
        duration_ns=(until - pl.col(AT)).fill_null(0),
    )


def sampled(changed: pl.DataFrame, keys: Sequence[str], points: int) -> pl.DataFrame:
    """The mean and the highest level in so many equal parts of each rank's time.

    Args:
        changed: As `levels` gives it.
        keys: As for `levels`.
        points: Parts into which the time from the first to the last change of each rank is cut.

    Returns:
        `keys`, `start_ns`, `duration_ns`, `mean`, `highest`; one row a part, in order.
    """
    rank = keys[0]
    lines = (
        changed.select(keys)
        .unique(maintain_order=True)
        .with_row_index("line")
        .with_columns(pl.col("line").cast(pl.Int64))
    )
    numbered = changed.join(lines, on=list(keys), nulls_equal=True, maintain_order="left")
    area = (pl.col("level") * pl.col("duration_ns")).cum_sum().over("line")
    known = numbered.select("line", AT, "level", area=area - pl.col("level") * pl.col("duration_ns"), since_ns=AT).sort(
        AT, maintain_order=True
    )
    spans = changed.group_by(rank).agg(first=pl.col(AT).min(), last=pl.col(AT).max())
    width = (pl.col("last") - pl.col("first") + points - 1) // points
    spans = spans.with_columns(width=pl.max_horizontal(width, pl.lit(1)))
    edges = (
        lines.join(spans, on=rank)
        .with_columns(part=pl.int_ranges(0, points + 1, dtype=pl.Int64))
        .explode("part")
        .with_columns((pl.col("first") + pl.col("part") * pl.col("width")).alias(AT))
        .sort(AT, maintain_order=True)
    )
    at_edges = edges.join_asof(known, on=AT, by="line", check_sortedness=False).with_columns(
        level=pl.col("level").fill_null(0),
        area=(pl.col("area") + pl.col("level") * (pl.col(AT) - pl.col("since_ns"))).fill_null(0),
    )
    at_edges = at_edges.sort("line", "part").with_columns(beyond=pl.col("area").shift(-1).over("line"))
    inside = numbered.join(spans, on=rank).select(
        "line", "level", part=(pl.col(AT) - pl.col("first")) // pl.col("width")
    )
    peaks = inside.group_by("line", "part").agg(peak=pl.col("level").max())
    return (
        at_edges.filter(pl.col("part") < points, pl.col(AT) < pl.col("last"))
        .join(peaks, on=["line", "part"], how="left", maintain_order="left")
        .sort("line", "part")
        .select(
            *keys,
            start_ns=pl.col(AT),
            duration_ns=pl.min_horizontal("width", pl.col("last") - pl.col(AT)),
            mean=(pl.col("beyond") - pl.col("area")) / pl.min_horizontal("width", pl.col("last") - pl.col(AT)),
            highest=pl.max_horizontal("level", "peak"),
        )
    )
