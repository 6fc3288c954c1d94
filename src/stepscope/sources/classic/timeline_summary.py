"""`timeline_summary`: how much a timeline holds. Its total is in us up to 1.x and in ms later; what fits decides."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stepscope.json_values import as_amount
from stepscope.sources.base import Sink
from stepscope.sources.side_files import read_object
from stepscope.tables import RANK_FIGURES

_NAMES = {
    "num_of_streams": "timeline_streams",
    "num_of_ops": "timeline_operators",
    "op_exe_times": "timeline_executions",
    "max_scope_name_num": "timeline_scope_levels",
}
_TOTAL = "total_time"
_UNITS = {"ms": 1e6, "us": 1e3}


@dataclass(frozen=True)
class SummaryEvidence:
    """Evidence about the total from the rest of the profile.

    Args:
        operations_ns: Sum of what was read; 0 if nothing was.
        steps: Rows of `steps`, if known.
    """

    operations_ns: int
    steps: pl.DataFrame | None


def write_timeline_summary(path: Path, evidence: SummaryEvidence, sink: Sink) -> None:
    """Write what the summary states.

    Args:
        path: The file.
        evidence: Evidence for the unit of its total.
        sink: Takes the rows, and a note if the unit is uncertain.
    """
    content = read_object(path, sink) or {}
    stated = {ours: as_amount(content.get(name)) for name, ours in _NAMES.items()}
    for name in (*_NAMES, _TOTAL):
        if content.get(name) is not None and as_amount(content[name]) is None:
            sink.issue("error", path, f"{name} is not a valid amount", "Copy the file again.", place=name)
    if content and not content.keys() & {*_NAMES, _TOTAL}:
        sink.issue("error", path, "has no known figure", "Report the format if it is new.")
    total = as_amount(content.get(_TOTAL))
    unit = None if total is None else _unit(path, total, stated["timeline_streams"], evidence, sink)
    if total is not None and unit is not None:
        stated["timeline_total_ns"] = total * _UNITS[unit]
    known = {name: value for name, value in stated.items() if value is not None}
    if known:
        sink.write(RANK_FIGURES, RANK_FIGURES.unchecked(name=list(known), value=list(known.values())))


def _unit(path: Path, total: float, streams: float | None, evidence: SummaryEvidence, sink: Sink) -> str | None:
    """The unit of the total; None if unknown."""
    for unit, factor in _UNITS.items():
        if total and evidence.operations_ns and 0.5 < total * factor / evidence.operations_ns < 2:
            return unit
    guess: str | None = None
    if evidence.steps is not None and not evidence.steps.is_empty():
        first, last = evidence.steps.select(pl.min("start_ns"), pl.max("end_ns")).row(0)
        guess = "ms" if total * _UNITS["ms"] <= (last - first) * max(streams or 1, 1) else "us"
    read_as = f"read as {guess}, which fits the length of the steps" if guess else "left out"
    sink.issue("note", path, f"{_TOTAL} has no unit; it is {read_as}", "Nothing to do.", place=_TOTAL)
    return guess
