"""Which kernels take more or less time than on the base, and what those that do have in common."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.job.kernel_patterns import PATTERNS, patterns_of
from stepscope.analysis.job.rank_kernels import compared
from stepscope.analysis.methods.work_classes import CLASSES
from stepscope.analysis.operators.kernel_steps import COPIES
from stepscope.analysis.step.host_work import COMMUNICATION_CALL
from stepscope.compare.differences import KEPT, MEASURED, differences
from stepscope.compare.noise import LIMITS, Limits
from stepscope.compare.registry import Sides, comparison
from stepscope.errors import StepscopeError, Unavailable
from stepscope.tables.base import Column, schema_of

BY = ("type", "name", "shape", "class", "operator")
"""What tells kernels apart: their operator type, else their name; their name; type and shapes; the class of their work
alone; the operator that launched them."""

IN_COMMON = 0.8
"""Share of the time that kernels with the same names must have on both sides, to be compared by name."""

COMPARABLE = 0.25
"""The same below which neither kernels nor operators are compared one by one, but classes of work: chosen by us."""

COLUMNS = columns(
    Column("name", "string", "Type or name of the kernels, their class, or the operator that launched them."),
    Column("work", "string", "Class of work; null for operators.", values=(*CLASSES, COPIES), importance=39),
    Column("core", "string", "Core type that ran it, e.g. `AI_CORE`; null if not recorded.", importance=30),
    Column("input_shapes", "string", "Shapes of the inputs, where shapes are compared.", importance=33),
    Column("compared_by", "string", "What tells these kernels apart.", values=BY, importance=4),
    *MEASURED,
    keep="name " + KEPT,
)


@comparison(COLUMNS)
def kernel_differences(
    side_steps: Sides,
    kernel_steps: Sides,
    operator_paths: Sides | None,
    by: str | None = None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Compare the kernels of both sides, on a CPU the operators: one row each, largest difference first.

    Args:
        by: What tells them apart (`BY`). By default the type; if types and names have little in common, as on devices
            of two makers, the operators that launched them if these have more in common; if neither has, the class.

    Raises:
        StepscopeError: If `by` is none of these.
        Unavailable: If operators are compared, but launched nothing.
    """
    if by is not None and by not in BY:
        raise StepscopeError(f"«--by» {by}: give one of {', '.join(BY)}")
    by = by or _what_is_common(kernel_steps, operator_paths)
    if by == "operator":
        rows = _launched(operator_paths)
        if rows is None:
            raise Unavailable("it is not recorded which operators launched the kernels")
    else:
        rows = Sides(*(_keyed(side, by) for side in kernel_steps))
    found = differences(rows, side_steps, ["name", "work", "core", "input_shapes"], limits=limits)
    return found.with_columns(compared_by=pl.lit(by)).select(names(COLUMNS))


def _keyed(rows: pl.DataFrame, by: str) -> pl.DataFrame:
    null = pl.lit(None, pl.String)
    name = {"class": pl.col("work"), "name": pl.col("name")}.get(by, pl.coalesce("type", "name"))
    return rows.select(
        *("rank", "step", "count", "total_ns", "work"),
        name=name,
        core=null if by == "class" else pl.col("core"),
        input_shapes=pl.col("input_shapes") if by == "shape" else null,
    )


def _launched(paths: Sides | None) -> Sides | None:
    """Operators with the time of the kernels that they launched; None if that is unknown on a side."""
    if paths is None:
        return None
    null = pl.lit(None, pl.String)
    found = [
        side.filter((pl.col("device_ns") > 0) & ~pl.col("name").str.contains(COMMUNICATION_CALL)).select(
            *("rank", "step", "name", "count"), total_ns="device_ns", work=null, core=null, input_shapes=null
        )
        for side in paths
    ]
    return Sides(*found) if all(side.height for side in found) else None


def _what_is_common(kernels: Sides, paths: Sides | None) -> str:
    types = Sides(*(_keyed(side, "type") for side in kernels))
    of_types = common_ratio(types)
    launched = _launched(paths)
    if of_types >= IN_COMMON:
        return "type"
    of_operators = 0.0 if launched is None else common_ratio(launched)
    if max(of_types, of_operators) < COMPARABLE:
        return "class"
    return "operator" if of_operators > of_types else "type"


def common_ratio(rows: Sides) -> float:
    """Share of the time of items whose names both sides have, on the side that has less of it."""
    shared = set(rows.base["name"]) & set(rows.new["name"])
    shares = []
    for side in rows:
        total = int(side["total_ns"].sum())
        common = int(side.filter(pl.col("name").is_in(list(shared)))["total_ns"].sum())
        shares.append(common / total if total else 0.0)
    return min(shares)


CHANGE = columns(
    Column("kind", "string", "Kind of work.", values=("compute", "memory")),
    Column("pattern", "string", "What the slower kernels have in common, as in `kernel_patterns`.", values=PATTERNS),
    Column(
        "factor",
        "float64",
        "How many times as long calls of equal shapes take as on the base; null if it is not about equal calls.",
    ),
    Column("names", "list[string]", "The classes that explain most of the difference, largest first; none if all do."),
    Column("named_ns", "int64", "Their part of the difference, in a step."),
    Column("difference_ns", "int64", "Time of all kernels in a step less that of the base."),
    Column("base_ns", "int64", "Time of the base's kernels in a step."),
    nulls="factor",
)


@comparison(CHANGE)
def kernel_change(kernel_classes: Sides) -> pl.DataFrame:
    """Summarise what kernels of the new side have in common that take longer: one row per kind of work.

    As `kernel_patterns`, with the base in place of the other ranks.
    """
    parts = [_change(kernel_classes, kind) for kind in ("compute", "memory")]
    return pl.concat([pl.DataFrame(schema=schema_of(CHANGE)), *(part for part in parts if part is not None)])


def _change(classes: Sides, kind: str) -> pl.DataFrame | None:
    """The row of a kind of work. If kernels are faster, it is about what the slower ones of the base have in common."""
    summed = [_summed(side, kind) for side in classes]
    if any(side.is_empty() for side in summed):
        return None
    base, new = (float((side["total_ns"] / side["steps"]).sum()) for side in summed)
    order = summed if new >= base else summed[::-1]
    marked = [side.with_columns(rank=pl.lit(place, pl.Int32)) for place, side in enumerate(order)]
    rows = compared(pl.concat(marked), slow=[1]).filter(pl.col("rank") == 1)
    found = patterns_of(rows).with_columns(base_ns=pl.lit(round(base), pl.Int64))
    if new < base:
        found = found.with_columns((1 / pl.col("factor")).alias("factor"), -pl.col("named_ns"), -pl.col("excess_ns"))
    return found.rename({"excess_ns": "difference_ns"}).select(names(CHANGE))


def _summed(side: pl.DataFrame, kind: str) -> pl.DataFrame:
    """The classes of a kind with the calls of all ranks, as of one rank."""
    steps = side.group_by("rank").agg(pl.col("steps").first())["steps"].sum()
    keys = ["kind", "name", "core", "variant", "sized_by"]
    sums = side.filter(pl.col("kind") == kind).group_by(keys).agg(pl.col("calls", "total_ns").sum())
    return sums.with_columns(steps=pl.lit(steps, pl.Int64)).sort(keys, nulls_last=True)
