"""Which operators and kernels each module of a model runs."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.methods.kernel_lists import as_text, callers, numbered_kernels, sequences
from stepscope.analysis.methods.launch_owners import owners
from stepscope.analysis.methods.module_ranges import is_module, module_calls, modules_at
from stepscope.analysis.methods.statistics import rounded, share
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import OPERATORS
from stepscope.tables.base import Column

NO_MODULES = (
    "no modules were recorded: record with `stepscope record --stacks` (with_stack=True), or on Ascend mark them as "
    "ranges of mstx's domain `Module`"
)

MODULE = Column("module", "string", "Path of the module: names of the modules around it, outermost first.")
PHASE = Column(
    "phase",
    "string",
    "`forward` if it ran in the module, `backward` if its forward operator did; null outside of all modules.",
    values=("forward", "backward"),
)

COLUMNS = columns(
    "rank",
    Column("parent", "string", "Path of the module around it; null at the top.", title="in module"),
    MODULE,
    PHASE,
    Column("operator", "string", "Operator that launches the kernels; null if not known."),
    Column("count", "int64", "Calls of the operator with these kernels.", importance=61),
    Column("kernels", "int64", "Kernels of one call.", importance=54),
    Column("total_ns", "int64", "Time of all kernels of these calls.", title="kernel time"),
    Column("mean_ns", "int64", "Mean of the kernels of a call.", importance=60),
    Column("share_ratio", "float64", "Share of the rank's device work.", title="share", importance=59),
    Column("sequence", "string", "Names of the kernels in the order of their launches; `(x3)`: three in a row."),
    keep="module operator total_ns count mean_ns phase share_ratio",
)


@analysis("rank", COLUMNS)
def module_operators(
    kernels: pl.LazyFrame,
    operators: pl.LazyFrame | None,
    slices: pl.LazyFrame,
    flows: pl.LazyFrame | None,
    shown: int = 20,
) -> pl.DataFrame:
    """Sum up the device work that operators launch in each module: one row per module, phase, operator and sequence of
    kernels, the longest kernel time first. Work outside of all modules has no module, so all work is in it once.

    Args:
        kernels: Device work, with copies and fills.
        operators: Operators.
        slices: Ranges of the host, among them modules and the calls that launch.
        flows: From forward to backward operators.
        shown: Entries of a sequence to write out; 0 for all.

    Raises:
        Unavailable: If no modules were recorded.
    """
    if slices.filter(is_module()).head(1).collect().is_empty():
        raise Unavailable(NO_MODULES)
    known = OPERATORS.or_empty(operators)
    owned = owners(kernels, known, slices)
    rows, names = numbered_kernels(kernels, owned)
    places = operator_places(slices, known, flows, owned["slice"])
    called = callers(known, sequences(rows), "name").join(places, on="slice", how="left", maintain_order="left")
    rest = kernels.join(owned.lazy().select("rank", "kernel"), on=["rank", "kernel"], how="anti")
    lone = rest.group_by("rank").agg(
        count=pl.len().cast(pl.Int64), total_ns=pl.col("duration_ns").sum(), kernels=pl.lit(1, pl.Int64)
    )
    sums = called.group_by("rank", "parent", pl.col("path").alias("module"), "phase", "sequence", operator="name").agg(
        count=pl.len().cast(pl.Int64), total_ns=pl.col("kernel_ns").sum(), kernels=pl.col("kernels").first()
    )
    told = as_text(sums, names, shown)
    found = pl.concat([told, lone.collect()], how="diagonal_relaxed").with_columns(
        share("total_ns"), mean_ns=rounded(pl.col("total_ns") / pl.col("count"))
    )
    by = ("module", "phase", "operator", "sequence")
    return found.select(column.name for column in COLUMNS).sort("rank", -pl.col("total_ns"), *by, nulls_last=True)


def operator_places(
    slices: pl.LazyFrame, operators: pl.LazyFrame, flows: pl.LazyFrame | None, wanted: pl.Series
) -> pl.DataFrame:
    """Module and phase of some operators of one rank: `slice`, `path`, `parent`, `phase`."""
    is_wanted = pl.col("slice").is_in(wanted.unique().implode()) | pl.col("forward_thread").is_not_null()
    asked = operators.filter(is_wanted).select("slice", "thread", "start_ns", "duration_ns").collect()
    placed = modules_at(module_calls(slices), asked, flows)
    return placed.select("slice", "path", "parent", "phase")
