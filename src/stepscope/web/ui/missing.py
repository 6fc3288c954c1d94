"""What a page says in place of a figure that the data of its run cannot give: what is missing, and how to record it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.web.ui.html import rendered
from stepscope.web.ui.wording import worded

if TYPE_CHECKING:
    from markupsafe import Markup

    from stepscope.errors import Unavailable
    from stepscope.web.ui.context import Context

RECORDED_AS = {"memory": "memory", "rank-memory": "memory", "links": "slow-links", "input": "dataloader"}
"""Pages all of whose figures need one kind of data, and the part of a report that says how that is recorded."""


def missing_figure(context: Context, name: str, reason: Unavailable) -> Markup:
    """The place of a figure, e.g. `memory-curve`, with the reason."""
    from stepscope.figures import figure_named

    title = figure_named(name).title.of(context.language)
    told = worded(reason.marked, context.language)
    return rendered(context, "table.html.j2", "missing", title=title, reason=told, record=how_to_record(context))


def how_to_record(context: Context) -> str:
    """How to record what a page shows, for the framework and device of its run; empty if it shows several things."""
    from stepscope.advice.finding import Platform
    from stepscope.report.outline import MODULES

    part = RECORDED_AS.get(context.state.path.rsplit("/", 1)[-1])
    texts = next((one.record for module in MODULES for one in module.parts if one.key == part), None)
    if not texts or context.entry is None:
        return ""
    kinds = [
        next(iter(kinds)) if len(kinds) == 1 else None for kinds in (context.entry.frameworks, context.entry.devices)
    ]
    return Platform(*kinds).pick(texts).of(context.language)
