"""Which line of the user's code called an operator: from the stack that was recorded with it, else from the Python
functions that ran around it."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.launch_owners import innermost
from stepscope.tables import OPERATORS, SLICES, STACKS

FUNCTION = r"^.*\(\d+\): "
"""A Python function with its file and line."""

LIBRARY = (
    r"(^|/)(torch|stepscope|site-packages|dist-packages|lib/python\d|mindspore|importlib|threading\.py|contextlib\.py)"
    r"|<frozen|^<built-in|^nn\.Module|<string>"
)
"""Frames of libraries, which are not where a user looks first."""


def places(
    called: pl.DataFrame, operators: pl.LazyFrame | None, stacks: pl.LazyFrame | None, slices: pl.LazyFrame | None
) -> pl.DataFrame:
    """The innermost line of the user's code around some ranges of the host: `rank`, `slice`, `code`; only those of
    which it is known.

    Args:
        called: `rank` and `slice` of the ranges.
        operators: All operators.
        stacks: All stacks.
        slices: All ranges.
    """
    wanted = called.select("rank", "slice").drop_nulls("slice").unique(maintain_order=True)
    found = _in_stacks(wanted, operators, stacks)
    rest = wanted.join(found, on=["rank", "slice"], how="anti")
    if rest.is_empty() or slices is None:
        return found
    return pl.concat([found, _in_functions(rest, slices)])


def _in_stacks(wanted: pl.DataFrame, operators: pl.LazyFrame | None, stacks: pl.LazyFrame | None) -> pl.DataFrame:
    calls = OPERATORS.or_empty(operators).filter(pl.col("stack").is_not_null()).select("rank", "slice", "stack")
    found = calls.join(wanted.lazy(), on=["rank", "slice"], how="semi")
    texts = found.join(STACKS.or_empty(stacks).select("rank", "stack", "text"), on=["rank", "stack"]).collect()
    lines = pl.col("text").str.split("\n")
    user = lines.list.eval(pl.element().filter(~pl.element().str.contains(LIBRARY)))
    code = pl.coalesce(user.list.first(), lines.list.first()).str.strip_chars("; \r")
    known = texts.select("rank", "slice", code=code).drop_nulls("code")
    return known.unique(["rank", "slice"], keep="first", maintain_order=True)


def _in_functions(wanted: pl.DataFrame, slices: pl.LazyFrame) -> pl.DataFrame:
    name = pl.col("name")
    python = SLICES.or_empty(slices).filter(pl.col("category") == "python").select("rank", "slice", "name")
    names = python.select("name").unique().filter(name.str.contains(FUNCTION) & ~name.str.contains(LIBRARY)).collect()
    if names.is_empty():
        return wanted.head(0).with_columns(code=pl.lit(None, pl.String))
    users = python.filter(name.is_in(names["name"].implode()))
    around = innermost(wanted.with_columns(asked="slice"), users, slices).drop_nulls("slice")
    known = around.lazy().join(users, on=["rank", "slice"]).collect()
    return known.select("rank", slice="asked", code="name").sort("rank", "slice")
