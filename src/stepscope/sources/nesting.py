"""Which range encloses which, on each thread: parent, depth and self time."""

from __future__ import annotations

import polars as pl

_BLOCK_ROWS = 200_000


def nest(ranges: pl.DataFrame) -> pl.DataFrame:
    """Nest the ranges of each thread.

    A range lies in the last one that started before it on its thread and is still open when it starts. Ranges
    that overlap without one holding the other count as nested; the child's overhang is not taken off the
    parent's self time. Of ranges with the same start the longer one is outside.

    The walk is a plain loop with a stack of open ranges: it takes ranges as they are, needs lists of one block
    of rows only, and costs a tenth of what decoding the same rows costs.

    Args:
        ranges: `start_ns`, `duration_ns` and `thread` (any type; only equality counts).

    Returns:
        In the rows' order: `parent` (row number of the enclosing range, null at the top), `depth` (0 at the
        top) and `self_ns` (duration less the direct children).
    """
    rows = (
        ranges.select("start_ns", "duration_ns", thread=pl.col("thread").rank("dense").fill_null(0))
        .with_row_index("row")
        .sort("thread", "start_ns", "duration_ns", "row", descending=[False, False, True, False])
    )
    walker = _Walker()
    blocks = [walker.walk(block) for block in rows.iter_slices(_BLOCK_ROWS)]
    if not blocks:
        return pl.DataFrame(schema={"parent": pl.Int64, "depth": pl.Int32, "self_ns": pl.Int64})
    nested = pl.concat(blocks)
    children = nested.group_by("parent").agg(pl.sum("inside")).drop_nulls("parent")
    # a negative or null parent never reaches the join: row numbers start at 0
    return (
        rows.select("row", "duration_ns")
        .with_columns(nested.get_columns())
        .join(children.rename({"parent": "row", "inside": "children_ns"}), on="row", how="left")
        .sort("row")
        .select(
            pl.col("parent").cast(pl.Int64),
            "depth",
            self_ns=(pl.col("duration_ns") - pl.col("children_ns").fill_null(0)).clip(lower_bound=0),
        )
    )


class _Walker:
    """Goes over sorted rows block by block, keeping the ranges that are open."""

    def __init__(self) -> None:
        self._thread = -1
        self._rows: list[int] = []
        self._ends: list[int] = []

    def walk(self, block: pl.DataFrame) -> pl.DataFrame:
        open_rows, open_ends, current = self._rows, self._ends, self._thread
        parents: list[int | None] = []
        depths: list[int] = []
        inside: list[int] = []
        columns = (block[name].to_list() for name in ("row", "start_ns", "duration_ns", "thread"))
        for row, start, duration, thread in zip(*columns, strict=True):
            if thread != current:
                current = thread
                open_rows.clear()
                open_ends.clear()
            end = start + duration
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
                open_rows.pop()
            if open_rows:
                parents.append(open_rows[-1])
                inside.append(min(end, open_ends[-1]) - start)
            else:
                parents.append(None)
                inside.append(0)
            depths.append(len(open_rows))
            open_rows.append(row)
            open_ends.append(end)
        self._thread = current
        return pl.DataFrame(
            {"parent": parents, "depth": depths, "inside": inside},
            schema={"parent": pl.UInt32, "depth": pl.Int32, "inside": pl.Int64},
        )
