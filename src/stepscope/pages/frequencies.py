"""At which clock rates devices ran."""

from __future__ import annotations

from stepscope.pages.base import Page, Section
from stepscope.pages.instead import KERNELS, recorded_by

PAGE = Page(
    "frequencies",
    "Show at which clock rates each rank's device ran, and which fell below what it is made for.",
    [
        Section("frequencies", "Clock rates of each rank", hidden=("samples",)),
        Section("rank_counters", "Counters compared with other ranks, means of {the_steps}"),
    ],
    more="A rate is `low` if it is neither the device's own nor that of idle cores; the limits can be changed "
    "(--limits). Whether that slows a rank down, is told by «`stepscope analyze`».",
    scope="job",
    instead=recorded_by(
        "Ascend's profiler writes clock rates into its trace (AI Core Freq); `stepscope record` samples those of GPUs",
        KERNELS,
    ),
)
