"""The longest gaps of each rank: what the host did in them, and what ended them."""

from __future__ import annotations

from stepscope.pages.base import Option, Page, Section

_IDS = ("process", "thread")

PAGE = Page(
    "gaps",
    "Show the longest gaps of each rank, in which nothing runs: cause, what the host does and where, what ends them.",
    [
        Section(
            "gaps",
            "Longest gaps",
            takes={"limit": "limit"},
            hidden=(*_IDS, "next_stream", "during_ratio", "mostly_ratio"),
        ),
        Section(
            "recurring_gaps",
            "Gaps between the same work {in_most_steps}",
            hidden=(*_IDS, "next_stream", "during_ratio", "mostly_ratio", "start_ns", "longest_step"),
        ),
    ],
    options=[Option("limit", "integer", "Gaps to list for each rank. Default: 20.", "N", minimum=1)],
    more="A gap lasts from the end of all work of a device (of all operators in a CPU-only recording) to the next "
    "work. `during` is the innermost range of the host that covers most of it, `mostly` where most of its time goes, "
    "and `layer` the layer of that. If the next work was launched before the gap, the host did not cause it.",
    scope="job",
)
