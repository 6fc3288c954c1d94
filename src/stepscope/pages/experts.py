"""How evenly experts are spread over ranks."""

from __future__ import annotations

from stepscope.pages.base import Page, Section
from stepscope.pages.instead import CALLS, recorded_by
from stepscope.pages.layout import LAYOUT

PAGE = Page(
    "experts",
    "Show how evenly the work of experts is spread over the ranks of each expert-parallel group.",
    [
        Section("expert_groups", "Groups, most uneven first", hidden=("group", "mean_load", "calls")),
        Section("expert_load", "Load of each rank in its group", hidden=("group",)),
        Section("expert_calls", "Calls of experts, in order", hidden=("group", "mean_load"), rows=10),
        Section("expert_costs", "What even experts would save", hidden=("group",)),
    ],
    more="The load is the tokens of grouped matrix products if shapes were recorded, else what all-to-all calls bring, "
    "else time, in the steps that the ranks of a group share. Select the steps to compare with «--steps».",
    options=[LAYOUT],
    scope="job",
    instead=recorded_by(
        "The work of other ranks is compared by «`stepscope ranks`»",
        CALLS,
    ),
)
