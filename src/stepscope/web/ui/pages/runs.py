"""The list of runs."""

from __future__ import annotations

from nicegui import ui

from stepscope.web.ui.context import Context
from stepscope.web.ui.frame import frame, overview_link


async def build(context: Context) -> None:
    """Build the list of runs."""
    with frame(context, context.word("runs")):
        for entry in context.web.catalogue.entries():
            ui.link(f"{entry.name} {entry.state}", overview_link(context, entry.id))
    context.panels.listen()
