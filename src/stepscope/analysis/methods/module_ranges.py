"""Modules of a model: the ranges in which they ran, how they contain one another, and which one a moment lies in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from stepscope.sources.ancestors import running
from stepscope.sources.nesting import nest
from stepscope.tables import FLOWS
from stepscope.tables.slices import MODULE_MARKS

PYTHON_MODULE = "nn.Module: "
"""How PyTorch's profiler names the ranges of modules among those of Python functions."""

BETWEEN = "/"
"""Stands between modules in a path."""


def is_module() -> pl.Expr:
    """Whether a row of `slices` is the range of a module."""
    python = (pl.col("category") == "python") & pl.col("name").str.starts_with(PYTHON_MODULE)
    return python | ((pl.col("category") == "annotation") & (pl.col("process") == MODULE_MARKS))


def module_calls(slices: pl.LazyFrame) -> pl.DataFrame:
    """The ranges of the modules of one rank, with their `step`, `path`, `parent` (path of the module around it; null at
    the top; the same for all ranges of a path) and `row_parent` (the row around it).

    A path is the names of the modules around it, outermost first; names that begin with that of the module around them
    are paths already. PyTorch numbers the modules of a class, so one that runs outside of all others, to compute its
    forward pass again in the backward pass, is the one of that name inside of others.
    """
    ranges = slices.filter(is_module()).select("name", "thread", "start_ns", "duration_ns", "step").collect()
    rows = ranges.sort("thread", "start_ns", -pl.col("duration_ns"), "name", nulls_last=True)
    above = nest(rows)["parent"]
    numbered = rows["name"].str.starts_with(PYTHON_MODULE).to_list()
    names, parents = rows["name"].str.strip_prefix(PYTHON_MODULE).to_list(), above.to_list()
    inside: dict[str, str] = {}
    for name, path, parent, is_numbered in zip(names, _paths(names, parents, {}), parents, numbered, strict=True):
        if parent is not None and is_numbered and len(path) > len(inside.get(name, "")):
            inside[name] = path
    paths = _paths(names, parents, inside)
    around = _around(paths, parents)
    outer = [around[path] for path in paths]
    found = {"path": pl.Series(paths, dtype=pl.String), "parent": pl.Series(outer, dtype=pl.String)}
    return rows.with_columns(**found, row_parent=above)


def _paths(names: Sequence[str], parents: Sequence[int | None], inside: Mapping[str, str]) -> list[str]:
    """The path of each range; of those at the top, the one in `inside` if their name is there."""
    paths: list[str] = []
    for name, parent in zip(names, parents, strict=True):
        outer = None if parent is None else paths[parent]
        if outer is None:
            paths.append(inside.get(name, name))
        else:
            paths.append(name if name.startswith(f"{outer}{BETWEEN}") else f"{outer}{BETWEEN}{name}")
    return paths


def _around(paths: Sequence[str], parents: Sequence[int | None]) -> dict[str, str | None]:
    """The module around each path: the innermost one in which a range of it ran, so that each has one place."""
    around: dict[str, str | None] = {}
    for path, parent in zip(paths, parents, strict=True):
        outer, known = None if parent is None else paths[parent], around.get(path)
        around[path] = max(outer or "", known or "", key=len) or None
    return around


def innermost(ranges: pl.DataFrame, moments: pl.DataFrame) -> pl.Series:
    """The row of the innermost range at each moment on its thread; null if there is none.

    Args:
        ranges: `thread`, `start_ns`, `duration_ns` and `row_parent` (the row that encloses each one).
        moments: `thread` and `start_ns`.
    """
    if ranges.is_empty() or moments.is_empty():
        return pl.repeat(None, moments.height, dtype=pl.Int64, eager=True)
    threads = pl.concat([ranges["thread"], moments["thread"]]).unique().sort().to_list()
    numbers = {thread: number for number, thread in enumerate(threads)}
    plain = [
        frame.select(
            pl.col("start_ns"),
            thread=pl.col("thread").replace_strict(numbers, return_dtype=pl.Int64),
            duration_ns=pl.col("duration_ns") if "duration_ns" in frame.columns else pl.lit(0, pl.Int64),
        )
        for frame in (ranges, moments)
    ]
    return running(plain[0], ranges["row_parent"], ranges.height, plain[1])


def modules_at(modules: pl.DataFrame, operators: pl.DataFrame, flows: pl.LazyFrame | None) -> pl.DataFrame:
    """The module and the phase of operators of one rank: those that run in a module are of its `forward` pass; others,
    within an operator of the backward pass, are of the module in which its forward operator ran.

    Args:
        modules: `module_calls`.
        operators: `thread`, `start_ns`, `duration_ns` and more of all operators that matter.
        flows: Recorded flows from forward to backward operators.

    Returns:
        The operators with `path`, `parent` and `phase`, all null outside of modules.
    """
    place = innermost(modules, operators)
    back = _backward(flows, operators)
    within = innermost(back, operators.select("thread", "start_ns"))
    forward = back.select(start_ns="from_ns", thread="from_thread")
    of_forward = innermost(modules, forward)
    linked = of_forward.gather(within) if back.height else within
    phase = pl.when(pl.col("direct").is_not_null()).then(pl.lit("forward"))
    rows = pl.DataFrame({"direct": place, "linked": linked}).with_columns(
        module=pl.coalesce("direct", "linked"),
        phase=phase.when(pl.col("linked").is_not_null()).then(pl.lit("backward")),
    )
    names: Sequence[pl.Series] = [modules[name].gather(rows["module"]) for name in ("path", "parent")]
    return operators.with_columns(*names, rows["phase"])


def _backward(flows: pl.LazyFrame | None, operators: pl.DataFrame) -> pl.DataFrame:
    """Operators of the backward pass of a known forward operator: their ranges, and when and where that one began."""
    known = FLOWS.or_empty(flows).filter(pl.col("kind") == "forward_backward").drop_nulls(["from_ns", "to_ns"])
    ends = known.select("from_ns", "from_thread", thread="to_thread", start_ns="to_ns").collect()
    longest = operators.sort("duration_ns", descending=True)
    outer = longest.unique(["thread", "start_ns"], keep="first", maintain_order=True)
    found = ends.join(outer.select("thread", "start_ns", "duration_ns"), on=["thread", "start_ns"])
    rows = found.unique(["thread", "start_ns"], keep="first", maintain_order=True).sort(
        "thread", "start_ns", -pl.col("duration_ns"), nulls_last=True
    )
    return rows.with_columns(row_parent=nest(rows.select("thread", "start_ns", "duration_ns"))["parent"])
