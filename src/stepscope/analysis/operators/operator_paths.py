"""How long the operators at each place of the tree of calls take in each step: what two runs are compared by."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.launched_work import launched_directly
from stepscope.analysis.methods.operator_phases import OPERATORS as PHASES
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.tables import KERNELS, SLICES
from stepscope.tables.base import Column, schema_of

BETWEEN = " > "
"""What stands between the operators of a path."""

DEEPEST = 64
"""Levels of operators within operators that are counted; there is no such depth but in damaged recordings."""

COLUMNS = columns(
    "rank step",
    Column("backward", "bool", "Whether the outermost operator belongs to a backward pass, by its name or thread."),
    Column("path", "string", "The operators around it, from the outermost, and itself, as `aten::linear > aten::mm`."),
    meaning("name", "Name of the operator."),
    meaning("count", "Number of calls in the step."),
    meaning("total_ns", "Their time on the host in the step."),
    meaning("self_ns", "Part of it outside of other operators."),
    Column("device_ns", "int64", "Time of the kernels that they launched directly; null without device work."),
    nulls="device_ns",
)


@analysis("rank", COLUMNS, together=True)
def operator_paths(
    operators: pl.LazyFrame, slices: pl.LazyFrame | None = None, kernels: pl.LazyFrame | None = None
) -> pl.DataFrame:
    """Sum up each rank's operators by step and place in the tree of calls, in order.

    A place is the path of operators around an operator, on the same thread: ranges that are no operators, such as marks
    and Python functions, are not part of it.
    """
    parts = [_of_rank(rank, operators, slices, kernels) for rank in ranks_of(operators)]
    if not parts:
        return pl.DataFrame(schema=schema_of(COLUMNS))
    return pl.concat(parts).select(names(COLUMNS)).sort("rank", "step", "path", "backward")


def _of_rank(
    rank: int, operators: pl.LazyFrame, slices: pl.LazyFrame | None, kernels: pl.LazyFrame | None
) -> pl.DataFrame:
    mine = pl.col("rank") == rank
    rows = (
        operators.filter(mine & pl.col("step").is_not_null())
        .select("slice", "name", "step", "duration_ns", "external_id", "forward_thread")
        .collect(engine="streaming")
    )
    parents = (
        SLICES.or_empty(slices)
        .filter(mine & (pl.col("category") == "operator") & pl.col("parent").is_not_null())
        .select("slice", "parent")
        .collect(engine="streaming")
    )
    device = launched_directly(KERNELS.or_empty(kernels).filter(mine)).collect(engine="streaming")
    rows = rows.join(parents.join(rows.select(parent="slice"), on="parent", how="semi"), on="slice", how="left")
    inside = rows.filter(pl.col("parent").is_not_null()).group_by(slice="parent")
    inner = inside.agg(inner_ns=pl.col("duration_ns").sum())
    rows = rows.join(inner, on="slice", how="left").with_columns(
        self_ns=(pl.col("duration_ns") - pl.col("inner_ns").fill_null(0)).clip(0)
    )
    firsts = rows.filter(pl.col("external_id").is_not_null()).sort("slice").unique("external_id", keep="first")
    launched = firsts.select("slice", "external_id").join(device.drop("rank"), on="external_id")
    rows = rows.join(launched.select("slice", "device_ns"), on="slice", how="left")
    paths, placed = _placed(rows)
    sums = placed.group_by("place", "step").agg(
        count=pl.len().cast(pl.Int64),
        total_ns=pl.col("duration_ns").sum(),
        self_ns=pl.col("self_ns").sum(),
        device_ns=pl.col("device_ns").sum() if device.height else pl.lit(None, pl.Int64),
    )
    return sums.join(paths, on="place").with_columns(rank=pl.lit(rank, pl.Int32))


def _placed(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The places (`place`, `path`, `name`, `backward`), and the rows, each with its place; level by level, the
    outermost first."""
    own = pl.col("name").str.contains(PHASES["backward"]) | (pl.col("forward_thread") > 0).fill_null(value=False)
    outer = pl.col("parent").is_null()
    level = rows.filter(outer).with_columns(above=pl.lit(None, pl.Int64), before=pl.lit(None, pl.String), backward=own)
    inner = rows.filter(~outer)
    paths, levels, count = list[pl.DataFrame](), list[pl.DataFrame](), 0
    for depth in range(DEEPEST):
        known = level.select("above", "before", "name", "backward").unique().sort("above", "name", "backward")
        known = known.with_columns(
            place=count + pl.int_range(pl.len(), dtype=pl.Int64),
            path=pl.concat_str("before", "name", separator=BETWEEN, ignore_nulls=True),
        )
        count += known.height
        keys = ["above", "name", "backward"]
        placed = level.join(known.select(*keys, "place", "path"), on=keys, nulls_equal=True)
        paths.append(known.select("place", "path", "name", "backward"))
        levels.append(placed.select("slice", "step", "duration_ns", "self_ns", "device_ns", "place"))
        if depth == DEEPEST - 1 or inner.is_empty():
            break
        around = placed.select(parent="slice", above="place", before="path", backward="backward")
        level = inner.join(around, on="parent")
        inner = inner.join(around, on="parent", how="anti")
        if level.is_empty():
            break
    return pl.concat(paths), pl.concat(levels)
