"""How long the host's calls of the device's runtime take over all ranks, and on each."""

from __future__ import annotations

from stepscope.pages.base import Page, Section
from stepscope.pages.instead import KERNELS, OPERATORS, TOTALS, recorded_by
from stepscope.pages.kernels import BY_RANK

PAGE = Page(
    "api",
    "Show how long calls of the device's runtime and driver take over all ranks, or on each.",
    [
        Section("api_statistics", "Calls of the runtime, all ranks", only_without=("by_rank",)),
        Section("api_totals", "Calls of the runtime, each rank", only_with=("by_rank",)),
    ],
    options=[BY_RANK],
    more="Shares are per layer, since calls of one layer run inside those of another. «`stepscope analyze`» says which "
    "calls hold a slow rank up.",
    scope="job",
    instead=recorded_by(
        "Calls of the runtime are in traces: PyTorch's, and trace_view.json or the databases of Ascend's profiler",
        TOTALS,
        OPERATORS,
        KERNELS,
    ),
)
