"""The points of memory curves: nodes of compiled graphs, and changes of an allocator."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.batches import batches_by_time
from stepscope.analysis.methods.intervals import with_last
from stepscope.analysis.methods.ordering import in_order
from stepscope.analysis.methods.statistics import first_label
from stepscope.selection import Choice, parse_selection
from stepscope.tables import GRAPHS, STEPS

FORWARD_START, BACKWARD_END = "forward_start", "backward_end"
"""Marks, and the columns of `graphs` with their nodes."""

TURN = "forward and backward"

PLACE = ("rank", "graph", "component", "device")
"""Columns that identify a curve."""


def of_nodes(nodes: pl.LazyFrame, graphs: pl.LazyFrame | None, tensors: pl.LazyFrame | None) -> pl.DataFrame:
    """Nodes of graphs with `allocated_bytes`, `static_bytes`, `total_bytes` and `mark`, in order of execution."""
    facts = GRAPHS.or_empty(graphs).select("rank", "graph", "static_bytes", FORWARD_START, BACKWARD_END)
    ordered = nodes.sort("rank", "graph", "node")
    rows = ordered.join(facts, on=["rank", "graph"], how="left", maintain_order="left").collect()
    rows = rows.join(node_totals(rows, tensors), on=["rank", "graph", "node"], how="left", maintain_order="left")
    static = pl.col("static_bytes").fill_null(0)
    allocated = pl.coalesce("allocated_bytes", pl.col("total_bytes") - static, "live_bytes")
    marks = {name: pl.col("node") == pl.col(name) for name in (FORWARD_START, BACKWARD_END)}
    total = pl.coalesce("total_bytes", allocated + static)
    return rows.with_columns(allocated_bytes=allocated, total_bytes=total, mark=first_label(marks))


def during(curve: pl.LazyFrame, steps: pl.LazyFrame | None, chosen: Choice) -> pl.LazyFrame:
    """The changes of an allocator in the chosen steps, and where a chosen step begins, the memory in use then (without
    a change). All changes if no steps are known."""
    wanted = parse_selection(chosen, "steps")
    if wanted is None or steps is None:
        return curve
    ranges = steps.filter(wanted.expression("step")).select("rank", "start_ns", "end_ns").sort("end_ns")
    time, start = pl.col("time_ns"), pl.col("start_ns")
    lasting = curve.sort("time_ns", maintain_order=True).with_columns(
        until_ns=time.shift(-1).over("rank", "component", "device")
    )
    next_ranges = lasting.join_asof(
        ranges, left_on="time_ns", right_on="end_ns", by="rank", strategy="forward", check_sortedness=False
    )
    lasts_until_start = (start < pl.col("until_ns")).fill_null(start.is_not_null())
    in_force = next_ranges.filter((time >= start) | lasts_until_start).with_columns(
        time_ns=pl.max_horizontal(time, start), change_bytes=pl.when(time >= start).then("change_bytes")
    )
    return in_force.select(curve.collect_schema().names()).collect().lazy()


def of_times(curve: pl.LazyFrame, steps: pl.LazyFrame | None) -> pl.DataFrame:
    """Changes of an allocator with `size_bytes`, `total_bytes`, `step`, `phase` and `mark`, in order of time."""
    ranges = STEPS.or_empty(steps).sort("end_ns", "step").collect()
    parts: list[pl.DataFrame] = []
    known = None  # where marks were found, as a step may go on in the next batch
    for batch in batches_by_time(curve, "time_ns"):
        placed = _placed(batch, ranges)
        firsts = placed.filter(pl.col("phase").is_in([TURN, "tail"])).unique(_MARKED, keep="first", maintain_order=True)
        if known is not None:
            firsts = firsts.join(known, on=_MARKED, how="anti", nulls_equal=True)
        places = firsts.select(_MARKED)
        known = places if known is None else pl.concat([known, places])
        is_first = pl.col("row").is_in(firsts["row"].implode())
        marks = {FORWARD_START: pl.col("phase") == TURN, BACKWARD_END: pl.col("phase") == "tail"}
        parts.append(placed.with_columns(mark=pl.when(is_first).then(first_label(marks))).drop("row"))
    return pl.concat(parts)


_MARKED = ["rank", "step", "phase", "component", "device"]
"""Columns of which the first row of each value may have a mark."""


def _placed(changes: pl.DataFrame, ranges: pl.DataFrame) -> pl.DataFrame:
    """Changes in order of time, numbered (`row`), with the step and phase in which they are."""
    ordered = in_order(changes, "rank", "time_ns", "component", "device")
    rows = ordered.with_columns(size_bytes=pl.col("change_bytes"), total_bytes=pl.col("allocated_bytes"))
    found = with_last(rows, ranges, "step", "forward_start_ns", "backward_end_ns", at="time_ns")
    time, ended = pl.col("time_ns"), pl.col("backward_end_ns")
    phases = {"interval": time < pl.col("forward_start_ns"), TURN: time <= ended, "tail": time > ended}
    inside = time <= pl.col("until_ns")
    used = [*rows.columns, *_MARKED[1:3]]
    placed = found.with_columns(step=pl.when(inside).then("step"), phase=pl.when(inside).then(first_label(phases)))
    return placed.select(used).with_row_index("row")


WHOLE, FROM_START, TO_END = "LifeLongGraphAll", "LifeLongGraphStart", "LifeLongGraphEnd"
"""Lifetimes that MindSpore names; others last from `life_start` to `life_end`."""


def lives(tensors: pl.LazyFrame) -> pl.LazyFrame:
    """Tensors with `first` and `last`, the nodes of their lifetime; null means the beginning or end of the graph."""
    lifetime = pl.col("lifetime")
    return tensors.with_columns(
        first=pl.when(~lifetime.is_in([WHOLE, FROM_START]).fill_null(False)).then("life_start"),
        last=pl.when(~lifetime.is_in([WHOLE, TO_END]).fill_null(False)).then("life_end"),
    )


def alive_at(node: pl.Expr) -> pl.Expr:
    """Whether a tensor with `first` and `last` is alive at a node."""
    return (pl.col("first").fill_null(node) <= node) & (pl.col("last").fill_null(node) >= node)


def node_totals(nodes: pl.DataFrame, tensors: pl.LazyFrame | None) -> pl.DataFrame:
    """The memory of the tensors (`graph_tensors`) alive at each node: `rank`, `graph`, `node`, `live_bytes` (null if
    unknown)."""
    key = ["rank", "graph"]
    if tensors is None:
        return nodes.select(*key, "node", live_bytes=pl.lit(None, pl.Int64))
    living = lives(tensors).select(*key, "first", "last", "size_bytes").collect()
    # a tensor adds its size at its first node and removes it after its last
    begins = living.select(*key, node=pl.col("first").fill_null(0), change="size_bytes")
    ends = living.filter(pl.col("last").is_not_null()).select(
        *key, node=pl.col("last") + 1, change=-pl.col("size_bytes")
    )
    changes = pl.concat([begins, ends]).group_by(*key, "node").agg(pl.col("change").sum()).sort("node")
    running = changes.with_columns(live_bytes=pl.col("change").cum_sum().over(key)).drop("change")
    ordered = nodes.select(*key, "node").sort("node")
    return ordered.join_asof(running, on="node", by=key, check_sortedness=False).with_columns(
        pl.col("live_bytes").fill_null(0)
    )
