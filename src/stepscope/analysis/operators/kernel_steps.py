"""How long each kernel takes in each step, by class of work, name, core and shapes: what two runs are compared by."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.names import named
from stepscope.analysis.methods.work_classes import CLASSES, work_class
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.analysis.step.host_work import COMMUNICATION_CALL
from stepscope.errors import Unavailable
from stepscope.tables import KERNELS, OPERATORS
from stepscope.tables.base import Column

COPIES = "copies"
"""The class of memory operations."""

KEYS = ["rank", "step", "kind", "name", "type", "core", "input_shapes"]

COLUMNS = columns(
    "rank step",
    Column("kind", "string", "Kind of work.", values=("compute", "memory")),
    Column("work", "string", "Class of work, by type or name.", values=(*CLASSES, COPIES)),
    meaning("name", "Name of the kernel; on a CPU, of the operator."),
    "type core input_shapes",
    meaning("count", "Number of calls in the step."),
    meaning("total_ns", "Their time in the step; on a CPU, outside of other operators."),
    Column("on_host", "bool", "True for operators of a rank without device work."),
    nulls="type core input_shapes",
)


@analysis("rank", COLUMNS, together=True)
def kernel_steps(
    steps: pl.LazyFrame, kernels: pl.LazyFrame | None = None, operators: pl.LazyFrame | None = None
) -> pl.DataFrame:
    """Sum up each rank's kernels by step, name, type, core and shapes, in order; on a CPU, its operators.

    Communication does not count, as it waits for others.

    Raises:
        Unavailable: If neither kernels nor operators of a rank were recorded.
    """
    every = ranks_of(steps)
    device = _summed(
        KERNELS.or_empty(kernels).filter((pl.col("kind") != "communication") & pl.col("step").is_not_null()),
        pl.col("duration_ns"),
    )
    on_device = device.filter(pl.col("kind") == "compute")["rank"].unique().to_list()
    own = OPERATORS.or_empty(operators).filter(~pl.col("rank").is_in(on_device) & pl.col("step").is_not_null())
    is_call = named(own, call=pl.col("name").str.contains(COMMUNICATION_CALL))["call"]
    computing = own.filter(~is_call.fill_null(value=False)).with_columns(
        kind=pl.lit("compute"), core=pl.lit(None, pl.String)
    )
    host = _summed(computing, pl.coalesce("self_ns", "duration_ns"))
    found = pl.concat([device.with_columns(on_host=False), host.with_columns(on_host=True)])
    if unknown := sorted(set(every) - {*on_device, *host["rank"].unique()}):
        raise Unavailable("no computing was recorded by kernel or operator", of=unknown)
    classes = found.select("kind", "type", "name", "core").unique()
    classes = classes.with_columns(
        work=pl.when(pl.col("kind") == "memory")
        .then(pl.lit(COPIES))
        .otherwise(work_class(pl.coalesce("type", "name"), pl.col("core")))
    )
    of_class = found.join(classes, on=["kind", "type", "name", "core"], nulls_equal=True)
    return of_class.select(names(COLUMNS)).sort(KEYS, nulls_last=True)


def _summed(rows: pl.LazyFrame, length: pl.Expr) -> pl.DataFrame:
    sums = rows.group_by(KEYS).agg(count=pl.len().cast(pl.Int64), total_ns=length.sum())
    return sums.collect(engine="streaming")
