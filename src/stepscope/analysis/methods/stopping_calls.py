"""What calls of the host cost that may stop its device: by rank, step and name."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.methods.intervals import END, covered, union
from stepscope.analysis.methods.operators_around import call_places
from stepscope.analysis.methods.step_windows import without_unmarked
from stepscope.tables.base import Column

COLUMNS = columns(
    "rank step",
    Column("name", "string", "Name of the call.", importance=64),
    Column("calls", "int64", "Number of calls, without those inside another one."),
    Column("total_ns", "int64", "Their time on the host."),
    Column("idle_ns", "int64", "Idle time of the device (of the framework, on a CPU) during them; null if unknown."),
    Column("longest_ns", "int64", "The longest of them."),
    Column("longest_start_ns", "int64", "When that one began.", moment=True),
    Column("place", "string", "User's function that made it, with file and line; null if not recorded."),
    nulls="step idle_ns place",
    keep="rank step name calls total_ns idle_ns longest_ns",
)
"""Columns of answers about such calls."""

_NAME = pl.col("name").str.replace(r"^(AscendCL|Runtime|Node)@", "")


def stopping_calls(
    slices: pl.LazyFrame,
    wanted: pl.Expr,
    idle_pieces: pl.DataFrame | None,
    operators: pl.LazyFrame | None,
    stacks: pl.LazyFrame | None,
) -> pl.DataFrame:
    """Sum up calls of the host by rank, step and name, in that order.

    Where calls overlap, the time of the device counts for the one that began first.

    Args:
        slices: The table.
        wanted: Which of its rows are the calls.
        idle_pieces: The answer of that name; None if it is unknown when the device worked.
        operators, stacks: The tables of these names, for `place`.
    """
    keep = ("rank", "slice", "step", "thread", "start_ns")
    found = slices.filter(wanted).select(*keep, name=_NAME, end_ns=END).collect(engine="streaming")
    rows = without_unmarked(found).sort("rank", "start_ns", -pl.col("end_ns"), "thread", "name", nulls_last=True)
    before = pl.col("end_ns").cum_max().shift(1)
    rows = rows.with_columns(
        inner=(pl.col("end_ns") <= before.over("rank", "thread")).fill_null(value=False),
        from_ns=pl.max_horizontal("start_ns", before.over("rank")),
    ).with_columns(from_ns=pl.min_horizontal("from_ns", "end_ns"))
    rows = rows.with_columns(idle_in(rows.with_columns(start_ns="from_ns"), idle_pieces))
    outer = rows.filter(~pl.col("inner")).with_columns(length_ns=pl.col("end_ns") - pl.col("start_ns"))
    longest = pl.col("length_ns").arg_max()
    sums = outer.group_by("rank", "step", "name").agg(
        calls=pl.len().cast(pl.Int64),
        total_ns=pl.col("length_ns").sum(),
        idle_ns=pl.when(pl.col("idle_ns").count() > 0).then(pl.col("idle_ns").sum()),
        longest_ns=pl.col("length_ns").max(),
        longest_start_ns=pl.col("start_ns").get(longest),
        slice=pl.col("slice").get(longest),
        thread=pl.col("thread").get(longest),
    )
    ranked = sums.sort(-pl.col("longest_ns"), "rank", "step", "name", nulls_last=True)
    placed = call_places(ranked.rename({"longest_start_ns": "at_ns"}), slices, operators, stacks)
    return (
        sums.join(placed, on=["rank", "slice"], how="left")
        .select([column.name for column in COLUMNS])
        .sort("rank", "step", "name", nulls_last=True)
    )


def idle_in(ranges: pl.DataFrame, idle_pieces: pl.DataFrame | None) -> pl.Series:
    """The idle time within each of some ranges (`rank`, `start_ns`, `end_ns`), as `idle_ns`; null if it is unknown."""
    if idle_pieces is None:
        return pl.repeat(None, ranges.height, dtype=pl.Int64, eager=True).alias("idle_ns")
    idle = union(idle_pieces.select("rank", "start_ns", end_ns=END), by=["rank"])
    numbered = ranges.select("rank", "start_ns", "end_ns").with_row_index("row")
    ends = [numbered.select("rank", "row", at=side) for side in ("start_ns", "end_ns")]
    first, last = (covered(side, idle) for side in ends)
    known = ranges["rank"].is_in(idle_pieces["rank"].unique().implode())
    return pl.select(pl.when(known).then((last - first).cast(pl.Int64))).to_series().alias("idle_ns")


def each_step(calls: pl.DataFrame, breakdown: pl.DataFrame) -> pl.DataFrame:
    """What calls cost in each step but a rank's first, which is start-up, unless it is the only one.

    Args:
        calls: Rows with `rank`, `step`, `calls`, `total_ns`, `idle_ns`.
        breakdown: The answer of that name.

    Returns:
        One row per rank and step, also of steps without such calls, in order: `rank`, `step`, `window_ns`, `calls`,
        `total_ns`, `idle_ns` (0 if unknown).
    """
    sums = calls.group_by("rank", "step").agg(pl.col("calls", "total_ns", "idle_ns").sum())
    steps = breakdown.select("rank", "step", "window_ns").sort("rank", "step")
    first = (pl.col("step") == pl.col("step").min().over("rank")) & (pl.len().over("rank") > 1)
    later = steps.filter(~first)
    found = later.join(sums, on=["rank", "step"], how="left", maintain_order="left")
    return found.with_columns(pl.col("calls", "total_ns", "idle_ns").fill_null(0))
