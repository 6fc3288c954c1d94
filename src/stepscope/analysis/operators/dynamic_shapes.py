"""Operators whose shapes change from step to step: their time in each step by shape, and what the changes cost."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.operator_lists import kernel_rows, named_operators
from stepscope.analysis.methods.ordering import in_order
from stepscope.analysis.methods.statistics import duration_sums, grouped_in_memory, rounded
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.errors import Unavailable
from stepscope.tables import OPERATOR_STEPS, RANKS
from stepscope.tables.base import Column

OPERATOR = ["rank", "unit", "type", "name", "full_name"]
"""Columns that identify an operator; in PyTorch, without positions in the model, all calls of one name."""

_EXECUTION = [*OPERATOR, "step", "input_shapes", "duration_ns"]


_SHAPE = [*OPERATOR, "input_shapes"]
_RECORDED = ("rank", "type", "name", "core", "kind")
"""What names operators, as recorded."""

_CALL = ("step", "input_shapes", "start_ns", "duration_ns")

NO_SHAPES = "executions were recorded by step, but without shapes"


@analysis("rank", columns("rank unit type name full_name step input_shapes duration_ns"), together=True)
def shape_executions(
    operator_steps: pl.LazyFrame | None,
    operators: pl.LazyFrame | None,
    kernels: pl.LazyFrame | None,
    ranks: pl.LazyFrame | None,
) -> pl.DataFrame:
    """Collect the executions of operators whose set of shapes differs between steps, in order.

    Executions that the source states (`operator_steps`) are used unchanged; for other ranks, operators and kernels
    count, if the source records their shapes.

    Raises:
        Unavailable: If shapes were not recorded or never change.
    """
    given = OPERATOR_STEPS.or_empty(operator_steps).select(_EXECUTION).collect()
    stated = given["rank"].unique().to_list()
    parts: list[pl.DataFrame | None] = [given]
    seen: set[tuple[int, int]] = set()
    if kernels is not None:
        rows, named = _with_shapes(kernels, stated), lambda calls: kernel_rows(calls, ranks)
        parts.append(_executions(rows, named, seen))
    if operators is not None:
        rows, named = _with_shapes(operators, stated), lambda calls: named_operators(calls, kernels)
        parts.append(_executions(rows, named, seen))
    found = pl.concat(part for part in parts if part is not None)
    if found.is_empty():
        reasons: dict[str, list[int]] = {}
        for rank in ranks_of(RANKS.or_empty(ranks)):
            reasons.setdefault(_why_none(sum(other == rank for other, _ in seen)), []).append(rank)
        why, alike = next(iter(reasons.items()), (_why_none(0), []))
        raise Unavailable(why, of=alike)
    return found


def _why_none(steps: int) -> str:
    """Why no operator with changing shapes was found, given the number of steps with shapes."""
    if steps == 1:
        return "there is nothing to compare the recorded shapes with, so it is unknown whether they change"
    recorded = "operators have the same shapes throughout" if steps else "operator shapes were not recorded"
    return f"{recorded}, so there are no dynamic shapes to show"


def _with_shapes(calls: pl.LazyFrame, stated: list[int]) -> pl.LazyFrame:
    """Calls with known step and shapes, of ranks whose executions the source does not state."""
    there = calls.collect_schema().names()
    recorded = calls.select(name for name in (*_RECORDED, *_CALL) if name in there)
    return recorded.drop_nulls(["step", "input_shapes"]).filter(~pl.col("rank").is_in(stated))


def _executions(
    calls: pl.LazyFrame, named: Callable[[pl.LazyFrame], pl.LazyFrame], seen: set[tuple[int, int]]
) -> pl.DataFrame | None:
    """The calls of operators whose set of shapes differs between steps, in order; None if there are none.

    Args:
        calls: Calls with known step and shapes.
        named: Adds the columns of `OPERATOR`.
        seen: Takes the ranks with the first and last step in which any ran.
    """
    recorded = [name for name in calls.collect_schema().names() if name not in _CALL]
    steps, kind = pl.col("step"), [*recorded, "input_shapes"]
    # Polars' streaming engine takes hundreds of MB for such lists
    parts = [grouped_in_memory(rows, kind, [steps.unique()]) for rows in batches(calls.select(*kind, "step"))]
    kinds = pl.concat(parts).group_by(kind).agg(steps.explode().unique())
    ends = kinds.select("rank", first=steps.list.min(), last=steps.list.max()).unique()
    seen |= {(rank, step) for rank, *of_rank in ends.iter_rows() for step in of_rank}
    unlisted = kinds.select(recorded).unique().with_row_index("recorded")
    listed = named(unlisted.lazy()).select("recorded", *OPERATOR).collect()
    changing = _changing(
        kinds.join(unlisted, on=recorded, nulls_equal=True).select("recorded", "input_shapes", "step"), listed
    )
    if changing.is_empty():
        return None
    wanted = unlisted.join(changing, on="recorded", how="semi").lazy()
    kept = calls.join(wanted, on=recorded, nulls_equal=True).select("recorded", *_CALL).collect(engine="streaming")
    rows = kept.join(changing, on="recorded")
    return in_order(rows, "rank", "start_ns", "duration_ns", *OPERATOR[1:], "input_shapes").select(_EXECUTION)


def _changing(kinds: pl.DataFrame, listed: pl.DataFrame) -> pl.DataFrame:
    """The rows of `listed` (`recorded`, `OPERATOR`) of the operators whose set of shapes differs between the steps in
    which they run; `kinds` has the shapes and lists of steps of each."""
    steps = pl.col("step")
    numbered = listed.select(OPERATOR).unique().with_row_index("operator").join(listed, on=OPERATOR, nulls_equal=True)
    of_operators = kinds.join(numbered.select("recorded", "operator"), on="recorded")
    shapes = of_operators.group_by("operator", "input_shapes").agg(steps.explode().unique())
    # the sets are equal if each shape is in all steps of its operator
    ran = shapes.group_by("operator").agg(steps.explode().n_unique(), least=steps.list.len().min())
    return numbered.join(ran.filter(pl.col("least") < steps), on="operator", how="semi").drop("operator")


@analysis(
    "rank",
    columns(
        "rank unit type name full_name step input_shapes count total_ns mean_ns",
        Column("is_new", "bool", "True in the first step with these shapes; null if shapes were not recorded."),
        keep="name step total_ns input_shapes count is_new mean_ns type",
    ),
    together=True,
)
def dynamic_shapes(shape_executions: pl.DataFrame) -> pl.DataFrame:
    """Sum the time of operators with changing shapes: one row per operator, step and shapes, by operator and step."""
    keys = [*OPERATOR, "step", "input_shapes"]
    first = pl.col("step").min().over(*OPERATOR, "input_shapes")
    return (
        shape_executions.group_by(keys, maintain_order=True)
        .agg(duration_sums())
        .with_columns(is_new=pl.when(pl.col("input_shapes").is_not_null()).then(pl.col("step") == first))
        .sort("rank", "unit", "type", "name", "full_name", "step", maintain_order=True)
    )


@analysis(
    "rank",
    columns(
        "rank unit",
        Column("type", "string", "Operator type."),
        "step count total_ns mean_ns shapes",
        keep="type step total_ns shapes count mean_ns unit",
    ),
    together=True,
)
def dynamic_shape_types(shape_executions: pl.DataFrame) -> pl.DataFrame:
    """Sum the time of operators with changing shapes: one row per type and step, by type."""
    keys = ["rank", "unit", "type", "step"]
    shapes = pl.col("input_shapes").drop_nulls().n_unique().cast(pl.Int64)
    return shape_executions.group_by(keys).agg(*duration_sums(), shapes=shapes).sort(keys)


COLUMNS = columns(
    "rank unit type name full_name shapes",
    Column("once", "int64", "Number of shapes that occur once."),
    "steps count total_ns",
    Column("fastest_ns", "int64", "Mean time of the fastest shape."),
    Column("slowest_ns", "int64", "Mean time of the slowest shape."),
    Column("spread_ns", "int64", "Extra time over all calls at the fastest shape; null if a step has several."),
    Column("first_call_ns", "int64", "Extra time of each shape's first call over the median of its later calls."),
    keep="name shapes total_ns spread_ns count type slowest_ns fastest_ns",
)


@analysis("rank", COLUMNS, together=True, nothing=NO_SHAPES)
def shape_costs(shape_executions: pl.DataFrame) -> pl.DataFrame:
    """Summarise operators with changing shapes over all steps: one row per operator, most shapes first.

    * `spread_ns`: the extra time compared with all calls at the shape that is fastest on average: an upper bound of
      what bucketing or padding to that shape could save. Null if an operator has several shapes within a step, as it is
      then used at several positions in the model.
    * `first_call_ns`: the extra time of the first call with each shape compared with the median of its later calls: the
      cost of new shapes (compiling, choosing algorithms, growing memory). Shapes that occur once do not count, as there
      is nothing to compare with.

    Raises:
        Unavailable: If executions were recorded without shapes.
    """
    rows = shape_executions.filter(pl.col("input_shapes").is_not_null())
    if rows.is_empty():
        raise Unavailable(NO_SHAPES)
    by_shape = rows.group_by(_SHAPE, maintain_order=True).agg(
        count=pl.len().cast(pl.Int64),
        mean=pl.col("duration_ns").mean(),
        first=pl.col("duration_ns").first(),
        later=pl.col("duration_ns").slice(1).median(),
    )
    excess = (pl.col("first") - pl.col("later")).clip(lower_bound=0).fill_null(0.0)
    in_step = rows.group_by(*OPERATOR, "step").agg(alike=pl.col("input_shapes").n_unique() == 1)
    steps = in_step.group_by(OPERATOR).agg(steps=pl.len().cast(pl.Int64), one_place=pl.col("alike").all())
    count, mean = pl.col("count"), pl.col("mean")
    return (
        by_shape.group_by(OPERATOR)
        .agg(
            shapes=pl.len().cast(pl.Int64),
            once=(count == 1).sum().cast(pl.Int64),
            total_ns=rounded((mean * count).sum()),
            fastest_ns=rounded(mean.min()),
            slowest_ns=rounded(mean.max()),
            spread_ns=rounded(((mean - mean.min()) * count).sum()),
            first_call_ns=rounded(excess.sum()),
            count=count.sum(),
        )
        .join(steps, on=OPERATOR, nulls_equal=True)
        .with_columns(spread_ns=pl.when("one_place").then("spread_ns"))
        .sort("rank", -pl.col("shapes"), -pl.col("total_ns"), "name", "full_name", "type", "unit")
        .select(names(COLUMNS))
    )
