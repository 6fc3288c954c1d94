"""Which range encloses which, on each thread: parent, depth and self time."""

from __future__ import annotations

import polars as pl

from stepscope.sources.trace_events import native

_BLOCK_ROWS = 50_000
_FOREVER = 2**63
_NOWHERE = -1


def nest(ranges: pl.DataFrame) -> pl.DataFrame:
    """Nest the ranges of each thread.

    Args:
        ranges: `start_ns`, `duration_ns` and `thread` (any type; only equality counts).

    Returns:
        In the rows' order: `parent` (row number of the enclosing range, null at the top), `depth` (0 at the
        top) and `self_ns` (duration less the direct children).
    """
    places = enclosing(ranges)
    spent = time_in_children(ranges, places["parent"])
    return places.with_columns(self_ns=(ranges["duration_ns"] - spent).clip(lower_bound=0))


def enclosing(ranges: pl.DataFrame) -> pl.DataFrame:
    """`parent` and `depth` of ranges, as `nest` gives them.

    A range lies in the last one that started before it on its thread and is still open when it starts. Ranges
    that overlap without one holding the other count as nested; the child's overhang is not taken off the
    parent's self time. Of ranges with the same start the longer one is outside.

    The walk is a plain loop with a stack of open ranges, compiled where there is a compiled decoder: it takes ranges
    as they are, overlapping or not.
    """
    rows = _on_one_axis(ranges)
    if rows.is_empty():
        return pl.DataFrame(schema={"parent": pl.Int64, "depth": pl.Int32})
    return _walked(rows).sort("row").select("parent", pl.col("depth").cast(pl.Int32))


def time_in_children(ranges: pl.DataFrame, parent: pl.Series, counted: pl.Series | None = None) -> pl.Series:
    """Time of each range that its direct children take, in ns.

    Args:
        ranges: As for `nest`.
        parent: As `nest` gives it.
        counted: Which children count; all if it is not given.
    """
    end = ranges["start_ns"] + ranges["duration_ns"]
    inside = pl.DataFrame({"row": parent, "end": end, "outer": end.gather(parent)}).select(
        "row", ns=pl.min_horizontal("end", "outer") - ranges["start_ns"]
    )
    inside = inside.drop_nulls("row") if counted is None else inside.filter(counted & pl.col("row").is_not_null())
    children = inside.group_by("row").agg(pl.sum("ns"))
    rows = pl.DataFrame({"row": pl.int_range(len(parent), dtype=pl.Int64, eager=True)})
    return rows.join(children, on="row", how="left", maintain_order="left")["ns"].fill_null(0)


def _walked(rows: pl.DataFrame) -> pl.DataFrame:
    """`row`, `parent` and `depth` of ranges in walking order."""
    try:
        places = native.nest(rows["start"], rows["end"])
        return rows.select("row", parent=rows["row"].gather(places["parent"]), depth=places["depth"])
    except native.Refused:
        open_rows, open_ends = [_NOWHERE], [_FOREVER]
        walked = pl.concat([_walk(block, open_rows, open_ends) for block in rows.iter_slices(_BLOCK_ROWS)])
        parent = walked.select(pl.when(pl.col("parent") != _NOWHERE).then("parent")).to_series()
        return rows.select("row", parent=parent, depth=walked["depth"])


def _on_one_axis(ranges: pl.DataFrame) -> pl.DataFrame:
    """`row`, `start`, `end` in walking order, with the threads laid one behind the other."""
    placed = ranges.select(
        row=pl.int_range(pl.len(), dtype=pl.Int64),
        thread=pl.col("thread").rank("dense").fill_null(0).cast(pl.Int64),
        start=pl.col("start_ns") - pl.col("start_ns").min(),
        end=pl.col("start_ns") + pl.col("duration_ns") - pl.col("start_ns").min(),
    )
    longest, threads = placed.select(pl.max("end"), pl.max("thread")).row(0)
    if longest is not None and (longest + 1) * (threads + 1) >= 2**62:  # absurd times: their order is enough
        order = pl.concat([placed["start"], placed["end"]]).rank("dense").cast(pl.Int64)
        placed = placed.with_columns(start=order.head(placed.height), end=order.tail(placed.height))
    behind = pl.col("thread") * (pl.col("end").max() + 1)
    return placed.select("row", start=pl.col("start") + behind, end=pl.col("end") + behind).sort(
        "start", "end", "row", descending=[False, True, False]
    )


def _walk(block: pl.DataFrame, open_rows: list[int], open_ends: list[int]) -> pl.DataFrame:
    """Parent and depth of each row; what stays open is left in the two stacks for the next block."""
    parents: list[int] = []
    depths: list[int] = []
    columns = (block[name].to_list() for name in ("row", "start", "end"))
    for row, start, end in zip(*columns, strict=True):
        while open_ends[-1] <= start:
            open_ends.pop()
            open_rows.pop()
        parents.append(open_rows[-1])
        depths.append(len(open_rows) - 1)
        open_rows.append(row)
        open_ends.append(end)
    return pl.DataFrame({"parent": parents, "depth": depths}, schema={"parent": pl.Int64, "depth": pl.Int64})
