"""What scripts and frameworks mark: how often, how long, on which rank longest."""

from __future__ import annotations

from stepscope.pages.base import Page, Section
from stepscope.pages.instead import MARKED_STEPS, TOTALS, recorded_by

PAGE = Page(
    "ranges",
    "Show the ranges and points that a script or framework marks: number and duration, over ranks and of each rank.",
    [
        Section("rank_ranges", "Marked ranges, all ranks together"),
        Section("ranges", "Marked ranges of each rank"),
    ],
    more="Ranges are those of record_function, NVTX and mstx, of steps, optimizers and communication, on the host and "
    "as a device shows them. Device work is that launched in a range on its own thread: what backward launches "
    "belongs to autograd's thread.",
    scope="job",
    instead=recorded_by(
        "Mark ranges with record_function, NVTX or mstx, and record a trace",
        MARKED_STEPS,
        TOTALS,
    ),
)
