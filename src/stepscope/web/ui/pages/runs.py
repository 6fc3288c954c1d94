"""The list of runs: what there is, how far it is read, what was found in each, and two ticked runs to compare.

Nothing here loads Polars, so that the first page is there while the rest of the application is still being loaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nicegui import ui

from stepscope.paths import shown
from stepscope.present import minute, size
from stepscope.web.ui.context import Context
from stepscope.web.ui.frame import frame, overview_link
from stepscope.web.ui.html import raw, rendered
from stepscope.web.ui.pages.runs_words import WORDS
from stepscope.web.ui.pages.sorting_runs import COLUMNS, by_column, direction, found_by
from stepscope.web.ui.panels import look_every
from stepscope.web.ui.state import State

if TYPE_CHECKING:
    from stepscope.web.catalogue import Entry

PAGE_ROWS = 100
"""Runs of a page; chosen by us: a browser lays them out at once."""

LOOK_S = 1.0
"""Seconds between two looks at whether the list has changed."""

READS = ("search", "sort", "page", "tick")


@dataclass(frozen=True)
class Listing:
    """The runs that the page shows.

    Args:
        rows: Those of this page of the list.
        found: How many there are with the text that was searched for.
        every: How many there are.
        busy: How many are still to be read or analysed.
        page: Number of this page, from 1.
        ticked: The runs to compare, the base first.
    """

    rows: Sequence[Entry]
    found: int
    every: int
    busy: int
    page: int
    ticked: Sequence[Entry]

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return max(1, -(-self.found // PAGE_ROWS))


async def build(context: Context) -> None:
    """Build the list of runs, and keep it up to date while it is open."""
    last: list[Listing] = []

    async def load(state: State) -> Listing:
        return listing(context.web.catalogue.entries(), state)

    def show(found: Listing, state: State) -> None:
        last[:] = [found]
        raw(table(context, found, state))

    with frame(context, context.word("runs")):
        search_field(context)
        panel = context.panels.add("runs", load, show, READS)
    seen = [context.web.catalogue.revision]

    async def look() -> None:
        revision = context.web.catalogue.revision
        if revision == seen[0] or not last:
            return
        seen[0] = revision
        # Most changes are those of runs that this page of the list does not show, and of the progress of a few.
        new = listing(context.web.catalogue.entries(), context.state)
        if not is_same_list(last[0], new):
            await panel.fill()
        elif changed := changes(context, last[0], new, context.state):
            last[:] = [new]
            told = json.dumps(changed).replace("<", "\\u003c")
            ui.run_javascript(f"stepscope.replace({told})")

    look_every(LOOK_S, look)
    context.panels.listen()
    await context.panels.fill()


def search_field(context: Context) -> None:
    """The field for searching; it is made anew only if it has to change, so that nobody is interrupted in typing."""
    holder = ui.element("div")
    last: list[Any] = []

    def show(state: State) -> None:
        made = _rendered(context, "search_field", hidden=state.others(("search", "page")), search=state.get("search"))
        if last == [made]:
            return
        last[:] = [made]
        holder.clear()
        with holder:
            raw(made)

    show(context.state)
    context.panels.follow(show)


def listing(entries: Sequence[Entry], state: State) -> Listing:
    """The runs that a state asks for."""
    found = by_column(found_by(entries, state.get("search")), state.get("sort"))
    pages = max(1, -(-len(found) // PAGE_ROWS))
    page = min(max(state.number("page", 1) or 1, 1), pages)
    known = {entry.id: entry for entry in entries}
    ticked = [known[identity] for identity in ticks(state) if identity in known]
    busy = sum(entry.state in ("waiting", "reading", "analysing") for entry in entries)
    return Listing(found[(page - 1) * PAGE_ROWS : page * PAGE_ROWS], len(found), len(entries), busy, page, ticked)


def ticks(state: State) -> list[str]:
    """Ids of the ticked runs in the order in which they were ticked: at most two, the base first."""
    return list(dict.fromkeys(filter(None, state.get("tick").split(","))))[-2:]


def toggled(state: State, identity: str) -> str:
    """The ticks after one is set or removed; a third one takes the place of the first."""
    given = ticks(state)
    left = [one for one in given if one != identity]
    return ",".join(left if identity in given else [*left, identity][-2:])


def is_same_list(old: Listing, new: Listing) -> bool:
    """Whether two lists have the same runs in the same places, whatever is said of them."""

    def places(found: Listing) -> tuple[object, ...]:
        shown = [[entry.id for entry in some] for some in (found.rows, found.ticked)]
        return *shown, found.found, found.every, found.page

    return places(old) == places(new)


def changes(context: Context, old: Listing, new: Listing, state: State) -> dict[str, str]:
    """What has to be said anew: HTML by the id of the element in whose place it comes."""
    made = {
        f"run-{entry.id}": _line(context, entry, new, state)
        for before, entry in zip(old.rows, new.rows, strict=True)
        if entry != before
    }
    if old.busy != new.busy:
        made["runs-count"] = str(_rendered(context, "counts", found=new, search=state.get("search")))
    return made


def _line(context: Context, entry: Entry, found: Listing, state: State) -> str:
    one, ticked = row(context, entry, state), [each.id for each in found.ticked]
    return str(_rendered(context, "one_line", one=one, ticked=ticked, hidden=state.others(("tick",)))).strip()


def table(context: Context, found: Listing, state: State) -> Any:
    """The table of runs, with what is ticked above it."""
    heads = [
        [
            {
                "title": column.title.of(context.language),
                "number": column.is_number,
                "order": direction(state.get("sort"), column),
                "url": state.changed(sort=column.following(state.get("sort")), page=None).url,
                "key": column.key,
            }
            for column in columns
        ]
        for columns in COLUMNS
    ]
    return _rendered(
        context,
        "listing",
        found=found,
        heads=heads,
        rows=[row(context, entry, state) for entry in found.rows],
        roots=[shown(root) for root in context.web.catalogue.roots],
        ticked=[entry.id for entry in found.ticked],
        hidden=state.others(("tick",)),
        search=state.get("search"),
        cleared=state.changed(tick=None).url,
        swapped=state.changed(tick=",".join(entry.id for entry in reversed(found.ticked))).url,
        unsearched=state.changed(search=None, page=None).url,
        compared=_compared(state, found.ticked),
        previous=state.changed(page=found.page - 1 if found.page > 2 else None).url,
        following=state.changed(page=found.page + 1).url,
    )


def _compared(state: State, ticked: Sequence[Entry]) -> str:
    """Where ticked runs are compared; a single one is compared with itself, rank by rank."""
    if not ticked:
        return ""
    return state.elsewhere("/compare", base=ticked[0].id, new=ticked[-1].id).url


def row(context: Context, entry: Entry, state: State) -> Mapping[str, Any]:
    """What one line of the table says."""
    world = entry.world_size
    return {
        "entry": entry,
        "url": overview_link(context, entry.id),
        "path": "" if entry.relative in ("", ".", entry.name) else entry.relative,
        "kinds": list(dict.fromkeys([*entry.formats, *entry.frameworks, *entry.devices])),
        "start": minute(entry.start_ns),
        "changed": minute(entry.changed_ns),
        "ranks": str(entry.ranks) if world in (None, entry.ranks) else f"{entry.ranks} / {world}",
        "size": size(entry.input_bytes),
        "state": context.word(f"state_{entry.state}"),
        "is_busy": entry.state in ("reading", "analysing"),
        "percent": f"{entry.progress:.0%}",
        "problem": entry.problem_in(context.language),
        "top": top_of(context, entry),
        "toggled": toggled(state, entry.id),
        "can_open": entry.state in ("ready", "analysing") or (entry.state == "reading" and entry.ranks > 0),
    }


def top_of(context: Context, entry: Entry) -> str:
    """The most important finding of a run in words; empty if there is none."""
    if entry.top is None:
        return ""
    from stepscope.advice import worded

    return worded(entry.top, context.language).summary


def _rendered(context: Context, name: str, **values: Any) -> Any:
    said = {key: text.of(context.language) for key, text in WORDS.items()}
    return rendered(context, "runs.html.j2", name, said=said, **values)
