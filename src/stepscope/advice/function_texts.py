"""Python functions in words: which of them ran while a rank had nothing to do."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from stepscope.advice.base import ms
from stepscope.present import listed

NAMED = 3
"""So many functions are named: more are not read."""

_FUNCTION = re.compile(r"^<built-in function (.*)>$")
_METHOD = re.compile(r"^<built-in method (\S*) ?of (.*) object>$")
_MODULES = {"sleep": "time.sleep"}
"""Built-in functions are recorded without their module; these names stand for one function only."""


def idle_functions_of(functions: pl.DataFrame | None, rank: int, cause: str, least_ratio: float) -> str:
    """The functions that ran on a rank while it was idle for a cause, as a sentence; empty if none is known.

    Args:
        functions: Result of `idle_functions`.
        rank: The rank.
        cause: The cause of idle time.
        least_ratio: Share of the idle time that a function must have to be named.
    """
    if functions is None:
        return ""
    rows = functions.filter((pl.col("rank") == rank) & (pl.col("cause") == cause))
    least = least_ratio * float(rows["idle_ns"].sum() or 0)
    dearest = rows.filter(pl.col("idle_ns") >= least).head(NAMED)
    if dearest.is_empty():
        return ""
    return f" It runs {listed([_spent(row) for row in dearest.iter_rows(named=True)])}."


def _spent(row: dict[str, Any]) -> str:
    """E.g. `time.sleep for 540 ms (called by write_log, log.py:26)`; the line is the first of the function."""
    if row["file"] is not None:
        return f"{row['function']} for {ms(row['idle_ns'])} ({row['file']}:{row['line']})"
    name, caller = _built_in(row["function"]), row["called_by"]
    where = f" (called by {caller.removesuffix(')').replace(' (', ', ', 1)})" if caller else ""
    return f"{name} for {ms(row['idle_ns'])}{where}"


def _built_in(name: str) -> str:
    """A built-in function as one would write it.

    Examples:
        >>> _built_in("<built-in function sleep>"), _built_in("<built-in method acquire of _thread.lock object>")
        ('time.sleep', '_thread.lock.acquire')
        >>> _built_in("<built-in method  of pybind11_builtins.pybind11_detail_function object>")
        'a C++ function'
    """
    if match := _FUNCTION.match(name):
        return _MODULES.get(match[1], match[1])
    if match := _METHOD.match(name):
        method, owner = match[1], match[2]
        return (method or "a C++ function") if "pybind11" in owner else f"{owner}.{method}"
    return name
