"""How long the operators at each place of the tree of calls take in each step: what two runs are compared by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.host_waits import outer_waits, waiting_calls
from stepscope.analysis.methods.launch_owners import Parents, owners
from stepscope.analysis.methods.module_ranges import innermost
from stepscope.analysis.methods.operator_phases import OPERATORS as PHASES
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.sources.ancestors import climb
from stepscope.tables import KERNELS, SLICES
from stepscope.tables.base import Column, schema_of

BETWEEN = " > "
"""What stands between the operators of a path."""

DEEPEST = 64
"""Levels of operators within operators that are counted; there is no such depth but in damaged recordings."""

MOST_SHAPES = 64
"""Different shapes at one place from which on they are not told apart: chosen by us, so that rows stay few where shapes
differ in each step."""

READS = r"^aten::(item|_local_scalar_dense)$"
"""Operators that read a value of the device, and so wait for it: where calls of the runtime are not recorded."""

COLUMNS = columns(
    "rank step",
    Column("backward", "bool", "Whether the outermost operator belongs to a backward pass, by its name or thread."),
    Column("path", "string", "The operators around it, from the outermost, and itself, as `aten::linear > aten::mm`."),
    meaning("name", "Name of the operator."),
    Column("input_shapes", "string", "Shapes of its inputs; null if not recorded, or if there are very many."),
    meaning("count", "Number of calls in the step."),
    meaning("total_ns", "Their time on the host in the step."),
    meaning("self_ns", "Part of it outside of other operators."),
    Column("wait_ns", "int64", "Part of `total_ns` in calls that wait for the device, as `cudaStreamSynchronize`."),
    Column("own_wait_ns", "int64", "Part of `self_ns` in such calls."),
    Column(
        "device_ns",
        "int64",
        "Time of the kernels that they launched directly, but for communication, which waits for others; null without "
        "device work.",
    ),
    nulls="input_shapes device_ns",
)


@analysis("rank", COLUMNS, together=True)
def operator_paths(
    operators: pl.LazyFrame, slices: pl.LazyFrame | None = None, kernels: pl.LazyFrame | None = None
) -> pl.DataFrame:
    """Sum up each rank's operators by step, place in the tree of calls and shapes, in order.

    A place is the path of operators around an operator, on the same thread: ranges that are no operators, such as marks
    and Python functions, are not part of it.
    """
    ranks = ranks_of(operators)
    if not ranks:
        return pl.DataFrame(schema=schema_of(COLUMNS))
    rows = (
        operators.filter(pl.col("step").is_not_null())
        .select("rank", "slice", "name", "step", "thread", "start_ns", "duration_ns", "forward_thread", "input_shapes")
        .collect(engine="streaming")
    )
    calls = SLICES.or_empty(slices)
    work = KERNELS.or_empty(kernels).filter((pl.col("kind") != "communication").fill_null(value=True))
    launched = owners(work, operators, calls).join(
        work.select("rank", "kernel", device_ns="duration_ns").collect(engine="streaming"), on=["rank", "kernel"]
    )
    device = launched.group_by("rank", "slice").agg(pl.col("device_ns").sum())
    waits = outer_waits(waiting_calls(calls, kernels)[0], calls)
    parents = Parents(calls, pl.Series(ranks, dtype=pl.Int32))
    runtime = calls.filter(pl.col("category") == "runtime").select(pl.col("rank").unique())
    with_calls = set(runtime.collect(engine="streaming")["rank"])
    parts = []
    for rank, (own, own_waits, own_device) in zip(ranks, _apart(ranks, rows, waits, device), strict=True):
        of_rank = _with_parents(own, rank, parents)
        reads = own_device.height > 0 and rank not in with_calls
        waited = _waited(of_rank, None if reads else own_waits)
        of_rank = of_rank.join(waited, on="slice", how="left").with_columns(
            pl.col("wait_ns", "own_wait_ns").fill_null(0)
        )
        parts.append(_of_rank(of_rank, own_device, rank))
    return pl.concat(parts).select(names(COLUMNS)).sort("rank", "step", "path", "backward", "input_shapes")


def _apart(ranks: Sequence[int], *tables: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, ...]]:
    """The rows of each rank in turn, of each table."""
    parts = [table.partition_by("rank", as_dict=True, maintain_order=True) for table in tables]
    for rank in ranks:
        yield tuple(of.get((rank,), table.clear()) for of, table in zip(parts, tables, strict=True))


def _with_parents(rows: pl.DataFrame, rank: int, parents: Parents) -> pl.DataFrame:
    """The operators with the operator around each (`parent`), whatever else is between them."""
    above = parents.of(rank, rows["slice"])
    around = climb(above.gather(rows["slice"]), above, rows["slice"])
    return rows.with_columns(parent=around)


def _waited(rows: pl.DataFrame, waits: pl.DataFrame | None) -> pl.DataFrame:
    """Time of waits in each operator that has some: `slice`, `own_wait_ns`, `wait_ns`.

    Args:
        rows: Operators of a rank.
        waits: Calls that wait; None if a device was recorded without calls of its runtime.
    """
    if waits is not None:
        numbers = rows.with_row_index("row").select(parent="slice", row_parent=pl.col("row").cast(pl.Int64))
        ranges = rows.join(numbers, on="parent", how="left", maintain_order="left")
        at = rows["slice"].gather(innermost(ranges, waits.select("thread", "start_ns")))
        own = waits.select(slice=at, own_wait_ns="duration_ns").drop_nulls()
    else:
        own = rows.filter(pl.col("name").str.contains(READS)).select("slice", own_wait_ns="duration_ns")
        inside = rows.filter(pl.col("slice").is_in(own["slice"].implode()))["parent"]
        own = own.filter(~pl.col("slice").is_in(inside.implode()).fill_null(value=False))
    own = own.group_by("slice").agg(pl.col("own_wait_ns").sum())
    level = own.rename({"own_wait_ns": "wait_ns"})
    levels, above = [level], rows.select("slice", "parent")
    for _ in range(DEEPEST):
        level = level.join(above, on="slice").drop_nulls("parent").group_by(slice="parent").agg(pl.col("wait_ns").sum())
        if level.is_empty():
            break
        levels.append(level)
    sums = pl.concat(levels).group_by("slice").agg(pl.col("wait_ns").sum())
    return sums.join(own, on="slice", how="left")


def _of_rank(rows: pl.DataFrame, device: pl.DataFrame, rank: int) -> pl.DataFrame:
    inside = rows.filter(pl.col("parent").is_not_null()).group_by(slice="parent")
    inner = inside.agg(inner_ns=pl.col("duration_ns").sum())
    rows = rows.join(inner, on="slice", how="left").with_columns(
        self_ns=(pl.col("duration_ns") - pl.col("inner_ns").fill_null(0)).clip(0)
    )
    rows = rows.join(device.select("slice", "device_ns"), on="slice", how="left")
    paths, placed = _placed(rows)
    few = pl.col("input_shapes").n_unique().over("place") <= MOST_SHAPES
    placed = placed.with_columns(input_shapes=pl.when(few).then("input_shapes"))
    sums = placed.group_by("place", "step", "input_shapes").agg(
        count=pl.len().cast(pl.Int64),
        total_ns=pl.col("duration_ns").sum(),
        self_ns=pl.col("self_ns").sum(),
        wait_ns=pl.min_horizontal("wait_ns", "duration_ns").sum(),
        own_wait_ns=pl.min_horizontal("own_wait_ns", "self_ns").sum(),
        device_ns=pl.col("device_ns").sum() if device.height else pl.lit(None, pl.Int64),
    )
    return sums.join(paths, on="place").with_columns(rank=pl.lit(rank, pl.Int32))


_MEASURED = ("slice", "step", "input_shapes", "duration_ns", "self_ns", "wait_ns", "own_wait_ns", "device_ns")


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
        levels.append(placed.select(*_MEASURED, "place"))
        if depth == DEEPEST - 1 or inner.is_empty():
            break
        around = placed.select(parent="slice", above="place", before="path", backward="backward")
        level = inner.join(around, on="parent")
        inner = inner.join(around, on="parent", how="anti")
        if level.is_empty():
            break
    return pl.concat(paths), pl.concat(levels)
