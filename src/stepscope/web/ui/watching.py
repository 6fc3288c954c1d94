"""What a page says of the run that it is about while that is read, changes, cannot be read, or is removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from stepscope.web.errors import UnknownRun
from stepscope.web.ui.context import Context
from stepscope.web.ui.html import raw, rendered
from stepscope.web.ui.panels import look_every
from stepscope.web.ui.state import State

if TYPE_CHECKING:
    from stepscope.web.catalogue import Entry

LOOK_S = 1.0
"""Seconds between two looks at the run."""


def watch(context: Context) -> None:
    """Say above the page how far its run is read, or that it is gone; fill the page anew if its data changes."""
    known = [context.entry]

    async def load(_: State) -> Entry | None:
        return present(context)

    def show(entry: Entry | None, _: State) -> None:
        if entry is None or is_worth_saying(entry):
            problem = "" if entry is None else entry.problem_in(context.language)
            raw(rendered(context, "overview.html.j2", "run_state", one=entry, problem=problem))

    panel = context.panels.add("run-state", load, show)

    async def look() -> None:
        entry, before = present(context), known[0]
        if entry == before:
            return
        known[0] = entry
        if entry is not None:
            context.entry = entry
        if is_lost(before) and not is_lost(entry):  # there was nothing to show
            ui.navigate.reload()
        elif entry is not None and before is not None and entry.stamp != before.stamp:
            await context.panels.fill()
        else:
            await panel.fill()

    look_every(LOOK_S, look)


def present(context: Context) -> Entry | None:
    """The run as the list has it now; None if it has left the list."""
    try:
        return context.web.catalogue.entry(context.run)
    except UnknownRun:
        return None


def is_lost(entry: Entry | None) -> bool:
    """Whether there is nothing to show of a run: it cannot be read, is gone, or nothing of it is read yet."""
    return entry is None or entry.state in ("failed", "gone") or not entry.ranks


def is_worth_saying(entry: Entry) -> bool:
    """Whether a page says in which state its run is."""
    return entry.state != "ready" or bool(entry.unread)
