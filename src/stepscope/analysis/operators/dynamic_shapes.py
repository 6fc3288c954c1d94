"""Operators whose shapes change from step to step: their time in each step by shape."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.methods.operator_lists import kernel_rows, operator_rows
from stepscope.analysis.methods.statistics import rounded
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables.base import Column

OPERATOR = ["rank", "unit", "type", "name", "full_name"]
"""Columns that identify an operator; in PyTorch, without positions in the model, all calls of one name."""

_EXECUTION = [*OPERATOR, "step", "input_shapes", "duration_ns"]


@analysis("rank", columns("rank unit type name full_name step input_shapes duration_ns"), together=True)
def shape_executions(
    operator_steps: pl.LazyFrame | None,
    operators: pl.LazyFrame | None,
    kernels: pl.LazyFrame | None,
    ranks: pl.LazyFrame | None,
) -> pl.DataFrame:
    """Collect the executions of operators whose shapes may change.

    Args:
        operator_steps: Executions by step as the source states them; used unchanged.
        operators: For other ranks, operators whose set of shapes differs between steps.
        kernels: Likewise kernels, if the source records their shapes.
        ranks: Device kind of each rank.

    Returns:
        One row per execution, in order.

    Raises:
        Unavailable: If shapes were not recorded or never change.
    """
    parts: list[pl.DataFrame] = []
    if operator_steps is not None:
        parts.append(operator_steps.select(_EXECUTION).collect())
    stated = parts[0]["rank"].unique().to_list() if parts else []
    seen: set[int] = set()
    for rows in _recorded(operators, kernels, ranks):
        executions = rows.filter(
            pl.col("step").is_not_null() & pl.col("input_shapes").is_not_null() & ~pl.col("rank").is_in(stated)
        )
        found = executions.select(*_EXECUTION, "start_ns").collect()
        seen.update(found["step"])
        in_order = _changing(found).sort("rank", "start_ns", "duration_ns", *OPERATOR[1:], "input_shapes")
        parts.append(in_order.select(_EXECUTION))
    found = pl.concat(parts) if parts else pl.DataFrame(schema={"rank": pl.Int32})
    if found.is_empty():
        raise Unavailable(_why_none(len(seen)))
    return found


def _why_none(steps: int) -> str:
    """Why no operator with changing shapes was found, given the number of steps with shapes."""
    if steps == 1:
        return "there is nothing to compare the recorded shapes with, so it is unknown whether they change"
    recorded = "operators have the same shapes throughout" if steps else "operator shapes were not recorded"
    return f"{recorded}, so there are no dynamic shapes to show"


def _recorded(
    operators: pl.LazyFrame | None, kernels: pl.LazyFrame | None, ranks: pl.LazyFrame | None
) -> list[pl.LazyFrame]:
    found = [] if kernels is None else [kernel_rows(kernels, ranks)]
    return found if operators is None else [*found, operator_rows(operators, kernels)]


def _changing(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of operators whose set of shapes differs between the steps in which they run."""
    sets = rows.group_by(*OPERATOR, "step").agg(shapes=pl.col("input_shapes").unique().sort().str.join("|"))
    changing = sets.group_by(OPERATOR).agg(pl.col("shapes").n_unique()).filter(pl.col("shapes") > 1)
    return rows.join(changing, on=OPERATOR, how="semi", nulls_equal=True, maintain_order="left")


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
    """Sum the time of operators with changing shapes by step and shape.

    Returns:
        One row per operator, step and shapes, by operator and step.
    """
    keys = [*OPERATOR, "step", "input_shapes"]
    first = pl.col("step").min().over(*OPERATOR, "input_shapes")
    return (
        _summed(shape_executions, keys)
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
    """Sum the time of operators with changing shapes by type and step.

    Returns:
        One row per type and step, by type.
    """
    keys = ["rank", "unit", "type", "step"]
    shapes = shape_executions.group_by(keys).agg(shapes=pl.col("input_shapes").drop_nulls().n_unique().cast(pl.Int64))
    return _summed(shape_executions, keys).join(shapes, on=keys).sort(keys)


def _summed(rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    duration = pl.col("duration_ns")
    return rows.group_by(keys, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("count"),
        duration.sum().alias("total_ns"),
        rounded(duration.mean()).alias("mean_ns"),
    )
