"""How fast collectives move data, and how evenly all-to-all calls spread it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from stepscope.pages.base import Page, Section
from stepscope.pages.instead import CALLS, recorded_by
from stepscope.pages.job import groups

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run


def _all_groups(run: Run, found: pl.DataFrame) -> Iterable[str]:
    if found.height and len(run.ranks) < len(run.whole.ranks):
        yield "Bandwidth is of all ranks of a group, and all groups are listed, also those without the chosen ranks."


PAGE = Page(
    "bandwidth",
    "Show algorithm and bus bandwidth of collectives by group, operation and size, and how even all-to-all calls are.",
    [
        Section("bus_bandwidth", "Bandwidth of collectives", derived=groups, notes=_all_groups),
        Section("uneven_splits", "All-to-all calls, the least even first", derived=groups, rows=10),
        Section("split_pairs", "What each rank sends to each other one", derived=groups, rows=10),
    ],
    more="Bandwidth is of the time in which all ranks are in the call, without waiting for the last one. Bus bandwidth "
    "is comparable with the speed of links whatever the number of ranks n: algorithm bandwidth times 2(n-1)/n for "
    "all-reduce, (n-1)/n for all-gather, reduce-scatter and all-to-all. Ranks may leave a broadcast, reduce, gather or "
    "scatter before others enter it, so these have no rate.",
    scope="job",
    instead=recorded_by(
        "Record all ranks with a profiler that states the size of communication calls",
        CALLS,
    ),
)
