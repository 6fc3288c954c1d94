"""Which range encloses which, on each thread: parent, depth and self time."""

from __future__ import annotations

from collections import defaultdict

import polars as pl

from stepscope.sources.native import nesting as compiled
from stepscope.sources.native.library import Refused
from stepscope.tables.base import repeated

_MOST_NUMBERS_PER_ROW = 4
_PLACES = {"parent": pl.Int64, "depth": pl.Int32}


def nest(ranges: pl.DataFrame, spent_ns: pl.Series | None = None, end_ns: int | None = None) -> pl.DataFrame:
    """Nest the ranges of each thread, or those of one chunk of time of a longer recording.

    Args:
        ranges: `start_ns`, `duration_ns` and `thread` (any type; only equality counts).
        spent_ns: Time of each range that its children of earlier chunks take.
        end_ns: Where the next chunk begins; None if there is none.

    Returns:
        In the rows' order: `parent` (row number of the enclosing range, null at the top), `depth` (0 at the
        top), `self_ns` (duration less the direct children), `spent_ns` (time of the children that are over) and
        `goes_on` (whether the next chunk needs the range as well).
    """
    places = enclosing(ranges)
    parent = places["parent"]
    goes_on = _unfinished(ranges["start_ns"] + ranges["duration_ns"], parent, end_ns)
    spent = time_in_children(ranges, parent, ~goes_on if goes_on.any() else None)
    spent = spent if spent_ns is None else spent_ns + spent
    return places.with_columns(
        (ranges["duration_ns"] - spent).clip(lower_bound=0).alias("self_ns"), spent.alias("spent_ns"), goes_on
    )


def _unfinished(ends: pl.Series, parent: pl.Series, end_ns: int | None) -> pl.Series:
    """Which ranges the next chunk needs as well: they, or ranges in them, end at `end_ns` or later."""
    if end_ns is None:
        return repeated("goes_on", False, pl.Boolean, len(ends))
    goes_on = (ends >= end_ns).alias("goes_on")  # an event at the very end of a range is still inside it
    found = goes_on.arg_true()
    while len(found):  # a range may end before one that began in it
        above = parent.gather(found).drop_nulls().unique()
        found = above.filter(~goes_on.gather(above))
        goes_on = goes_on.scatter(found, True)
    return goes_on


def enclosing(ranges: pl.DataFrame) -> pl.DataFrame:
    """`parent` and `depth` of ranges, as `nest` gives them.

    A range lies in the last one that started before it on its thread and is still open when it starts. Ranges
    that overlap without one holding the other count as nested; the child's overhang is not taken off the
    parent's self time. Of ranges with the same start the longer one is outside.

    The walk is a plain loop with a stack of open ranges for each thread, compiled if there is a compiled decoder. It
    takes ranges as they are, overlapping or not.
    """
    if ranges.is_empty():
        return pl.DataFrame(schema=_PLACES)
    threads = _numbers(ranges["thread"])
    try:
        return compiled.nest(threads, ranges["start_ns"], ranges["duration_ns"])
    except Refused:
        return _walked(ranges.select("start_ns", "duration_ns", thread=threads))


def time_in_children(ranges: pl.DataFrame, parent: pl.Series, counted: pl.Series | None = None) -> pl.Series:
    """Time of each range that its direct children take, in ns.

    Args:
        ranges: As for `nest`.
        parent: As `nest` gives it.
        counted: Which children count; all if it is not given.
    """
    if counted is not None:
        parent = parent.zip_with(counted, pl.Series([None], dtype=parent.dtype))
    start, duration = ranges["start_ns"], ranges["duration_ns"]
    try:
        return compiled.time_inside(start, duration, parent).alias("ns")
    except Refused:
        end = start + duration
        inside = pl.DataFrame({"row": parent, "end": end, "outer": end.gather(parent)}).select(
            "row", ns=pl.min_horizontal("end", "outer") - start
        )
        children = inside.drop_nulls("row").group_by("row").agg(pl.sum("ns"))
        none = pl.zeros(len(parent), dtype=pl.Int64, eager=True)
        return none.scatter(children["row"], children["ns"]).alias("ns")


def _numbers(thread: pl.Series) -> pl.Series:
    """A number for each thread, from 0 on; as Int64, and with at most a few times as many numbers as rows."""
    if isinstance(thread.dtype, pl.Struct) and thread.struct.fields and not thread.null_count():
        first, *others = map(_numbers, thread.struct.unnest().get_columns())
        for other in others:
            first = _numbers(first * (_bounds(other)[1] + 1) + other)
        return first
    # The codes of categories are numbers already; to rank strings costs fifteen times as much.
    values = (thread.cast(pl.Categorical) if thread.dtype == pl.String else thread).to_physical()
    least, most = _bounds(values)
    if not -(2**62) < least <= most < 2**62 or most - least > _MOST_NUMBERS_PER_ROW * len(values):
        values, least = values.rank("dense"), 1
    nulls = values.null_count() > 0
    numbers: pl.Series = values.cast(pl.Int64) - (least - nulls)
    return numbers.fill_null(0) if nulls else numbers


def _bounds(values: pl.Series) -> tuple[int, int]:
    """The smallest and largest of some whole numbers; (1, 0) for anything else."""
    if values.dtype.is_integer():
        least, most = values.min(), values.max()
        if isinstance(least, int) and isinstance(most, int):
            return least, most
    return 1, 0


def _walked(ranges: pl.DataFrame) -> pl.DataFrame:
    """`parent` and `depth` of ranges, without a compiled decoder."""
    parents: list[int | None] = [None] * ranges.height
    depths = [0] * ranges.height
    stacks: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)  # row and end of the ranges that are open
    rows = ranges.with_row_index("row").sort("start_ns", "duration_ns", "row", descending=[False, True, False])
    columns = (rows[name].to_list() for name in ("row", "thread", "start_ns", "duration_ns"))
    for row, thread, start, duration in zip(*columns, strict=True):
        stack = stacks[thread]
        while stack and stack[-1][1] <= start:
            stack.pop()
        if stack:
            parents[row] = stack[-1][0]
        depths[row] = len(stack)
        stack.append((row, start + duration))
    return pl.DataFrame({"parent": parents, "depth": depths}, schema=_PLACES)
