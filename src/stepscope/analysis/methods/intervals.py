"""Arithmetic on time ranges: how long kinds of work are active, alone and together, in each window.

A single sweep computes all overlaps without joins: sort the range ends, count the open ranges of each layer, and sum
the pieces between neighbouring ends. Ranges of ranks are swept and joined by the compiled code if there is any and they
are nearly in order, else by Polars, with the same result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias, TypeVar

import polars as pl

from stepscope.analysis.methods.ordering import in_order
from stepscope.sources.matching import last_started
from stepscope.sources.native import sweeping
from stepscope.sources.native.library import Refused, is_available

Rows = TypeVar("Rows", pl.DataFrame, pl.LazyFrame)

Ranges: TypeAlias = pl.DataFrame | pl.LazyFrame

WINDOW = "window"

END = pl.col("start_ns") + pl.col("duration_ns")
"""The end of a range of which start and duration are known."""


def pieces(layers: Mapping[str, Ranges], windows: Ranges, by: Sequence[str] = ()) -> pl.LazyFrame:
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
    swept = _compiled(layers, windows, by, whole=False)
    return _swept(layers, windows, by) if swept is None else swept


def lengths(layers: Mapping[str, Ranges], windows: Ranges, by: Sequence[str] = ()) -> pl.DataFrame:
    """How long each set of layers is active in each window: the sums of `pieces`, in any order.

    Returns:
        `by`, `window`, `duration_ns` (above 0) and one Boolean column for each layer.
    """
    swept = _compiled(layers, windows, by, whole=True)
    if swept is not None:
        return swept.drop("start_ns").collect(engine="in-memory")
    return _swept(layers, windows, by).group_by(*by, WINDOW, *layers).agg(pl.col("duration_ns").sum()).collect()


def _compiled(layers: Mapping[str, Ranges], windows: Ranges, by: Sequence[str], *, whole: bool) -> pl.LazyFrame | None:
    """`pieces`, or with `whole` their sums, by the compiled sweep; None if it cannot make them."""
    if [*by] not in ([], ["rank"]) or not is_available():
        return None
    rank = pl.col("rank").cast(pl.Int64) if by else pl.lit(0, pl.Int64).alias("rank")
    times = pl.col("start_ns", "end_ns").cast(pl.Int64)
    given = _eager(windows.select(*by, WINDOW, "start_ns", "end_ns"))
    numbered = given.select(rank, times, pl.col(WINDOW).cast(pl.Int64))
    if numbered.is_empty():  # no pieces, whatever the layers
        return _swept({name: layer.clear() for name, layer in layers.items()}, given, by)
    ranges = {name: _eager(layer.select(rank, times)) for name, layer in layers.items()}
    known = {name: rows for name, rows in ranges.items() if rows.height}
    try:
        swept = sweeping.sweep([*known.values()], numbered, whole=whole)
    except Refused:
        in_time = in_order(_lasting(numbered), "rank", "start_ns")
        try:
            swept = sweeping.sweep([*map(_ends_in_order, known.values())], in_time, whole=whole)
        except Refused:
            return None
    active = {name: pl.col("active") & (1 << bit) != 0 for bit, name in enumerate(known)}
    never = pl.lit(value=False)
    return swept.lazy().select(
        *(pl.col(name).cast(given.schema[name]) for name in by),
        *(WINDOW, "start_ns", "duration_ns"),
        **{name: active.get(name, never) for name in layers},
    )


def _ends_in_order(ranges: pl.DataFrame) -> pl.DataFrame:
    """The starts of a layer in order, and beside them its ends in order: a sweep only counts them."""
    lasting = _lasting(ranges)
    starts, ends = (in_order(lasting.select("rank", side), "rank", side) for side in ("start_ns", "end_ns"))
    return starts.with_columns(ends["end_ns"])


def _lasting(ranges: pl.DataFrame) -> pl.DataFrame:
    return ranges.filter(pl.col("end_ns") > pl.col("start_ns"))


def _eager(rows: Ranges) -> pl.DataFrame:
    return rows.collect(engine="in-memory") if isinstance(rows, pl.LazyFrame) else rows


def _swept(layers: Mapping[str, Ranges], windows: Ranges, by: Sequence[str]) -> pl.LazyFrame:
    """`pieces` by Polars."""
    names = list(layers)
    # Each end carries the number of its layer, positive if it opens and negative if it closes; windows are numbered
    # after the layers. This keeps the sorted rows small.
    same = pl.lit(None, pl.Int64)
    parts = [_ends(ranges.lazy(), number, by, same, same) for number, ranges in enumerate(layers.values(), 1)]
    parts.append(_ends(windows.lazy(), len(names) + 1, by, pl.col(WINDOW).cast(pl.Int64), pl.lit(-1, pl.Int64)))
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


def union(ranges: Rows, by: Sequence[str] = ()) -> Rows:
    """Merge ranges (`start_ns`, `end_ns`) that touch or overlap. The result is sorted and disjoint.

    Args:
        ranges: Any ranges.
        by: Columns, e.g. the rank; only ranges with equal values are merged.
    """
    if isinstance(ranges, pl.LazyFrame):
        return _joined(ranges, by)
    if [*by] == ["rank"] and is_available():
        schema = {name: ranges.schema[name] for name in ("rank", "start_ns", "end_ns")}
        given = ranges.select(pl.col(*schema).cast(pl.Int64))
        for rows in (given, lambda: in_order(given, "rank", "start_ns")):
            with suppress(Refused):
                return sweeping.union(rows if isinstance(rows, pl.DataFrame) else rows()).cast(schema)  # type: ignore[arg-type]
    return _joined(ranges.lazy(), by).collect(engine="in-memory")


def _joined(ranges: pl.LazyFrame, by: Sequence[str]) -> pl.LazyFrame:
    """`union` by Polars."""
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


def covered(moments: pl.DataFrame, ranges: pl.DataFrame) -> pl.Series:
    """How much of the time before each of some moments (`rank`, `row`, `at`) the ranges of its rank take, in order of
    `row`; the difference between two moments is what they take between these.

    Args:
        moments: The moments.
        ranges: `rank`, `start_ns`, `end_ns`, disjoint and in order of time, as from `union`.
    """
    length = pl.col("end_ns") - pl.col("start_ns")
    before = ranges.with_columns(before=(length.cum_sum() - length).over("rank"), at="start_ns").sort("at")
    found = moments.sort("at", "row").join_asof(before, on="at", by="rank", check_sortedness=False)
    inside = pl.min_horizontal("at", "end_ns") - pl.col("start_ns")
    return found.select("row", covered=(pl.col("before") + inside).fill_null(0)).sort("row")["covered"]


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
    return with_latest(rows, bounds, at)


def with_latest(rows: Rows, bounds: Rows, at: str = "start_ns") -> Rows:
    """The rows in order of time (`at`), each joined with the last of its rank's `bounds` at or before it; these are in
    order of time, too."""
    if isinstance(rows, pl.LazyFrame) or isinstance(bounds, pl.LazyFrame):
        return rows.sort(at, maintain_order=True).join_asof(bounds, on=at, by="rank", check_sortedness=False)
    ordered = rows if rows[at].is_sorted() else rows.sort(at, maintain_order=True)
    others: list[str] = [name for name in bounds.columns if name not in ("rank", at)]
    rank = ordered["rank"].min()
    if rank is None or rank != ordered["rank"].max() or not {*others}.isdisjoint(rows.columns):
        return ordered.join_asof(bounds, on=at, by="rank", check_sortedness=False)
    # the usual case of a long table, in which joining takes several times as long
    own = bounds.filter(pl.col("rank") == rank)
    place = last_started(ordered[at], own[at])
    return ordered.with_columns_seq(own[name].gather(place) for name in others)


def starting_in(rows: Rows, ranges: Rows, *more: str, at: str = "start_ns") -> Rows:
    """The rows that start inside their rank's ranges, as `with_last` joins them."""
    return with_last(rows, ranges, *more, at=at).filter(pl.col(at) < pl.col("until_ns"))


def outside(rows: Rows, ranges: Rows) -> Rows:
    """The rows that start outside their rank's ranges, which are disjoint, in order of time."""
    last = with_last(rows, ranges)
    return last.filter(pl.col("until_ns").is_null() | (pl.col("start_ns") >= pl.col("until_ns"))).drop("until_ns")


def _ends(ranges: pl.LazyFrame, number: int, by: Sequence[str], opens: pl.Expr, closes: pl.Expr) -> pl.LazyFrame:
    """Both ends of each range, all closings before all openings, with what `window` becomes there (null: unchanged)."""
    valid = ranges.filter(pl.col("end_ns") > pl.col("start_ns"))
    return pl.concat(
        valid.select(*by, at=pl.col(side).cast(pl.Int64), end=pl.lit(end, pl.Int8), window=window)
        for side, end, window in (("end_ns", -number, closes), ("start_ns", number, opens))
    )
