"""What each module of a model costs in each step: what two runs are compared by."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.launch_owners import owners
from stepscope.analysis.methods.module_ranges import is_module, module_calls
from stepscope.analysis.modules.module_operators import MODULE, NO_MODULES, operator_places
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import KERNELS, OPERATORS
from stepscope.tables.base import Column

COLUMNS = columns(
    "rank step",
    MODULE,
    Column("parent", "string", "Path of the module around it; null at the top."),
    Column("calls", "int64", "Calls of the module in the step."),
    Column("host_ns", "int64", "Time of these calls on the host."),
    Column("own_host_ns", "int64", "Part of it outside of the modules in it."),
    Column("kernel_ns", "int64", "Device work of the step launched in it and the modules in it, forward and backward."),
    Column("own_ns", "int64", "Part of it outside of the modules in it."),
    nulls="parent kernel_ns own_ns",
    keep="module kernel_ns host_ns",
)


@analysis("rank", COLUMNS)
def module_steps(
    slices: pl.LazyFrame,
    kernels: pl.LazyFrame | None,
    operators: pl.LazyFrame | None,
    flows: pl.LazyFrame | None,
) -> pl.DataFrame:
    """Sum up the modules of a rank by step, in order; without device work, only their time on the host.

    Raises:
        Unavailable: If no modules were recorded in steps.
    """
    if slices.filter(is_module()).head(1).collect().is_empty():
        raise Unavailable(NO_MODULES)
    rank = slices.select("rank").head(1).collect().item()
    ranges = module_calls(slices)
    inner = ranges.group_by(row="row_parent").agg(inner_ns=pl.col("duration_ns").sum()).drop_nulls("row")
    rows = ranges.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64)).join(inner, on="row", how="left")
    host = (
        rows.filter(pl.col("step").is_not_null())
        .group_by("step", "path")
        .agg(
            calls=pl.len().cast(pl.Int64),
            host_ns=pl.col("duration_ns").sum(),
            own_host_ns=(pl.col("duration_ns") - pl.col("inner_ns").fill_null(0)).clip(0).sum(),
        )
    )
    if host.is_empty():
        raise Unavailable("no modules were recorded in steps")
    around = dict(ranges.select("path", "parent").unique().iter_rows())
    device = _device_times(slices, KERNELS.or_empty(kernels), OPERATORS.or_empty(operators), flows, around)
    found = (
        host.join(device, on=["step", "path"], how="full", coalesce=True)
        if device.height
        else host.with_columns(kernel_ns=pl.lit(None, pl.Int64), own_ns=pl.lit(None, pl.Int64))
    )
    parents = pl.DataFrame(list(around.items()), schema={"path": pl.String, "parent": pl.String}, orient="row")
    known = ["calls", "host_ns", "own_host_ns", *(["kernel_ns", "own_ns"] if device.height else [])]
    return (
        found.with_columns(pl.col(known).fill_null(0), rank=pl.lit(rank, pl.Int32))
        .join(parents, on="path", how="left")
        .rename({"path": "module"})
        .select(names(COLUMNS))
        .sort("step", "module")
    )


def _device_times(
    slices: pl.LazyFrame,
    kernels: pl.LazyFrame,
    operators: pl.LazyFrame,
    flows: pl.LazyFrame | None,
    around: Mapping[str, str | None],
) -> pl.DataFrame:
    """Device work of each step and module: `step`, `path`, `kernel_ns`, `own_ns`."""
    work = kernels.filter(pl.col("step").is_not_null()).select("rank", "kernel", "step", "duration_ns")
    owned = owners(kernels, operators, slices).join(work.collect(engine="streaming"), on=["rank", "kernel"])
    places = operator_places(slices, operators, flows, owned["slice"]).select("slice", "path").drop_nulls()
    own = owned.join(places, on="slice").group_by("step", "path").agg(own_ns=pl.col("duration_ns").sum())
    pairs = [(path, outer) for path in around for outer in _outwards(path, around)]
    outer = pl.DataFrame(pairs, schema={"path": pl.String, "outer": pl.String}, orient="row")
    whole = own.join(outer, on="path").group_by("step", path="outer").agg(kernel_ns=pl.col("own_ns").sum())
    return whole.join(own, on=["step", "path"], how="left").with_columns(pl.col("own_ns").fill_null(0))


def _outwards(path: str, around: Mapping[str, str | None]) -> list[str]:
    """A path and those of the modules around it."""
    found = [path]
    while (outer := around.get(found[-1])) is not None and outer not in found:
        found.append(outer)
    return found
