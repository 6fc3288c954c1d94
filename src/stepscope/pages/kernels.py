"""How long kernels take over all ranks, and on each."""

from __future__ import annotations

from stepscope.pages.base import Option, Page, Section
from stepscope.pages.instead import OPERATORS, TOTALS, recorded_by

BY_RANK = Option("by_rank", "flag", "Show the statistics of each rank instead of all ranks together.", "", False)

SPREAD = ("std_ns", "q1_ns", "q3_ns", "p95_ns")
"""Columns of statistics that narrow displays do without."""

PAGE = Page(
    "kernels",
    "Show how long kernels and operators take over all ranks, or on each: by type, and by name and shapes.",
    [
        Section("kernel_type_statistics", "Kernels of all ranks by operator type", only_without=("by_rank",)),
        Section("kernel_statistics", "Kernels of all ranks by name and shapes", only_without=("by_rank",)),
        Section("operator_statistics", "Framework operators of all ranks", only_without=("by_rank",)),
        Section(
            "operator_type_ranks",
            "Operators of all ranks by type",
            unless="operator_statistics",
            only_without=("by_rank",),
        ),
        Section("kernel_type_totals", "Kernels of each rank by operator type", only_with=("by_rank",)),
        Section("kernel_shape_totals", "Kernels of each rank by name and shapes", only_with=("by_rank",)),
    ],
    options=[BY_RANK],
    more="The ranks beside the shortest and the longest call are those on which it ran. Percentiles are exact, over "
    "all calls of all ranks. Communication is left out, since its kernels wait for other ranks. «--by-rank» has the "
    "same statistics of each rank; «`stepscope ops`» those of one rank's operators.",
    scope="job",
    instead=recorded_by(
        "Record the device as well, e.g. activities=[CPU, CUDA] of PyTorch's profiler",
        OPERATORS,
        TOTALS,
    ),
)
