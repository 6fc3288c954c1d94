"""What communication costs each rank, group and operator."""

from __future__ import annotations

from stepscope.pages.base import STAGE, Page, Section
from stepscope.pages.job import calls
from stepscope.pages.layout import LAYOUT
from stepscope.pages.links import BY_STEP, FILTERS, LINK_OPTIONS, of_mean

PAGE = Page(
    "communication",
    "Show what communication costs each rank, group and operator, how much of it is waiting, and over which links.",
    [
        Section(
            "rank_communication",
            "Communication of each rank",
            derived=of_mean,
            takes={"stage": "stage", "by_step": "by_step"},
            hidden=("parts_by",),
        ),
        Section("communication", "Communication by group, operation and size", derived=calls),
        Section(
            "rank_calls", "Operators of each rank", derived=of_mean, takes={"by_step": "by_step"}, hidden=("group",)
        ),
        Section("call_links", "Links of each operator", derived=of_mean, takes={"by_step": "by_step", **FILTERS}),
    ],
    options=[STAGE, BY_STEP, *LINK_OPTIONS, LAYOUT],
    more="The rank that waits least is the one that the others wait for. Search operators by name with --table "
    "rank_calls --search; `stepscope links` sums up links over operators.",
    scope="job",
)
