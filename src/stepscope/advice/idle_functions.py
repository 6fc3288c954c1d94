"""Which Python functions ran while a rank was idle."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

NAMED = 3
"""Number of functions that are named."""

_FUNCTION = re.compile(r"^<built-in function (.*)>$")
_METHOD = re.compile(r"^<built-in method (\S*) ?of (.*) object>$")
_MODULES = {"sleep": "time.sleep"}
"""Built-in functions are recorded without their module; these names are unambiguous."""


def functions_of(functions: pl.DataFrame | None, rank: int, cause: str, least_ratio: float) -> list[dict[str, Any]]:
    """The functions that ran on a rank during idle time of a cause, longest first; empty if none is known.

    Args:
        functions: Result of `idle_functions`.
        rank: The rank.
        cause: The cause of idle time.
        least_ratio: Smallest share of the idle time for a function to be named.

    Returns:
        Of each its `name` (None of a C++ function without one), `idle_ns`, and where it is: `file` and `line` (of the
        caller, for a built-in function), and that function, `called_by`.
    """
    if functions is None:
        return []
    rows = functions.filter((pl.col("rank") == rank) & (pl.col("cause") == cause))
    least = least_ratio * float(rows["idle_ns"].sum() or 0)
    return [_function(row) for row in rows.filter(pl.col("idle_ns") >= least).head(NAMED).iter_rows(named=True)]


def _function(row: dict[str, Any]) -> dict[str, Any]:
    known = {"name": row["function"], "idle_ns": row["idle_ns"], "file": row["file"], "line": row["line"]}
    if row["file"] is not None:
        return {**known, "called_by": None}
    caller, _, place = (row["called_by"] or "").removesuffix(")").rpartition(" (")
    file, _, line = place.rpartition(":")
    return {**known, "name": _built_in(row["function"]), "called_by": caller, "file": file, "line": line or None}


def _built_in(name: str) -> str | None:
    """A built-in function as written in Python; None for a C++ function without a name.

    Examples:
        >>> _built_in("<built-in function sleep>"), _built_in("<built-in method acquire of _thread.lock object>")
        ('time.sleep', '_thread.lock.acquire')
        >>> _built_in("<built-in method  of pybind11_builtins.pybind11_detail_function object>")
    """
    if match := _FUNCTION.match(name):
        return _MODULES.get(match[1], match[1])
    if match := _METHOD.match(name):
        method, owner = match[1], match[2]
        return (method or None) if "pybind11" in owner else f"{owner}.{method}"
    return name
