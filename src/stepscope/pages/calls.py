"""How long communication calls take over all ranks, and which ranks the longest wait for."""

from __future__ import annotations

from stepscope.pages import instead
from stepscope.pages.base import Page, Section
from stepscope.pages.job import groups
from stepscope.pages.kernels import BY_RANK
from stepscope.pages.layout import LAYOUT

PAGE = Page(
    "calls",
    "Show how long communication calls take over all ranks, or on each, and why the longest take so long.",
    [
        Section("call_statistics", "Calls of all ranks by operation", only_without=("by_rank",)),
        Section("call_totals", "Calls of each rank by operation", only_with=("by_rank",)),
        Section(
            "call_spread", "Longest calls, compared over their ranks", rows=10, derived=groups, hidden=("sequence",)
        ),
        Section("longest_calls", "Longest calls of each rank", rows=10, derived=groups),
        Section(
            "wait_chains", "Who waits for whom, in {the_median_step}", rows=10, derived=groups, hidden=("mean_ns",)
        ),
        Section("process_groups", "Process groups", hidden=("members",), rows=10),
    ],
    options=[BY_RANK, LAYOUT],
    more="A call is short on the rank that the others wait for, as that one enters last. What holds it up, and what "
    "mending it saves, is told by «`stepscope analyze`».",
    scope="job",
    instead=instead.recorded_by("Record a trace of a job with several ranks"),
)
