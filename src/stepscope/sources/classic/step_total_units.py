"""Unit of the times in `cluster_analyse`: from a header, then by fit with the step trace, then by form."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.classic.step_trace_average import TICK_NS

_STATED = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_UNIT = re.compile(r"\((ns|us|ms|s)\)", re.IGNORECASE)
_MS = _STATED["ms"]
_CANDIDATES = {"ms": _MS, "ticks of 10 ns": TICK_NS, "us": 1_000, "ns": 1}
_AGREES = 1.5
"""A sum of phases up to this many times a step still matches that step; units differ by more."""
_PHASES = {"interval_ns", "forward_backward_ns", "tail_ns"}
_PARTS = (_PHASES, {"computing_and_free_ns", "communication_not_overlapped_ns"})
"""Columns that make up a step."""


def unit_ns(path: Path, headers: list[str], rows: pl.DataFrame, steps: pl.DataFrame | None, sink: Sink) -> int:
    """The unit of the times in ns.

    Args:
        path: The file.
        headers: Its headers.
        rows: Its figures, in columns of `step_totals`.
        steps: Rows of `steps`, if known.
        sink: Takes a note if the unit is not the usual one.
    """
    stated = {match[1].lower() for header in headers if (match := _UNIT.search(header))}
    if len(stated) == 1:
        return _STATED[stated.pop()]
    usual = "ticks of 10 ns" if _PHASES & set(rows.columns) and _are_ticks(rows) else "ms"
    fitting = [name for name, unit in _CANDIDATES.items() if _fits(rows, unit, steps)]
    unit = fitting[0] if len(fitting) == 1 else usual
    if unit != "ms":
        why = "this matches the steps of the step trace" if fitting == [unit] else "they are whole numbers"
        sink.issue("note", path, f"its times are read as {unit}: {why}", "Nothing to do.", place="line 1")
    return _CANDIDATES[unit]


def _are_ticks(rows: pl.DataFrame) -> bool:
    """Whether all figures are whole numbers, which times in ms with their four decimals are not."""
    return all(bool((rows[name].drop_nulls() % 1 == 0).all()) for name in rows.columns) and rows.height > 0


def _fits(rows: pl.DataFrame, unit: int, steps: pl.DataFrame | None) -> bool:
    """Whether, in a unit, the figures of the middle row make up the middle step."""
    parts = next((part for part in _PARTS if part <= set(rows.columns)), None)
    if parts is None or steps is None or steps.is_empty():
        return False
    length = steps.select((pl.col("end_ns") - pl.col("start_ns")).median()).item()
    own = rows.select(pl.sum_horizontal(sorted(parts)).median()).item()
    return bool(own and length and 1 / _AGREES <= own * unit / length <= _AGREES)
