"""How much memory a rank uses, where the peak is, and what holds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.pages.base import Option, Page, Section
from stepscope.pages.instead import MARKED_STEPS, recorded_by

if TYPE_CHECKING:
    import polars as pl


def _none(hints: pl.DataFrame) -> Iterator[str]:
    """That nothing was found is an answer too."""
    if hints.is_empty():
        yield "No sign of a leak, fragmentation or memory pressure in what was recorded."


PAGE = Page(
    "memory",
    "Show the memory usage of a rank: the peak, what holds it, the curve, and signs of leaks and fragmentation.",
    [
        Section("memory_peak", "Peak memory usage"),
        Section("memory_hints", "Hints", every_step=True, sentences=_none),
        Section(
            "memory_breakdown",
            "Allocated at the peak",
            takes={"graph": "graph", "node": "node", "at_ns": "at_ns"},
            chosen_heading="Allocated at the chosen point",
            hidden=("format", "tensor"),
        ),
        Section("memory_usage", "Memory in use"),
    ],
    options=[
        Option("graph", "integer", "Show what is allocated in this graph.", "G"),
        Option("node", "integer", "Show what is allocated at this node of the graph.", "N"),
        Option("at_ns", "integer", "Show what is allocated at this time, in ns as in «--json».", "T"),
    ],
    instead=recorded_by(
        "Record it with profile_memory=True, or with `stepscope record --memory`",
        MARKED_STEPS,
    ),
)
