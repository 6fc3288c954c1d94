"""All pages that have a counterpart here."""

from __future__ import annotations

import pages_advice
import pages_flops
import pages_input
import pages_operators
import pages_pipeline
import pages_ranks
import pages_shapes
import pages_steps
import pages_strategy
import pages_usage

PAGES = {
    **pages_steps.PAGES,
    **pages_operators.PAGES,
    **pages_flops.PAGES,
    **pages_input.PAGES,
    **pages_usage.PAGES,
    **pages_shapes.PAGES,
    **pages_advice.PAGES,
    **pages_pipeline.PAGES,
    **pages_strategy.PAGES,
    **pages_ranks.PAGES,
}

ELSEWHERE = {
    **dict.fromkeys(
        ("timeline", "timeline-summary", "msprof_timeline", "msprof_timeline_option"), "timelines are their own subject"
    ),
    **dict.fromkeys(("devices", "profile_info"), "about the server and its files"),
}
"""Pages without a counterpart here, and why."""
