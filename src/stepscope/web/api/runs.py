"""Which runs there are, and how far each of them is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl
from starlette.responses import Response

from stepscope.advice import worded
from stepscope.errors import NoRows
from stepscope.pages.listing import Listing, Part, listed
from stepscope.present import Language
from stepscope.web.api.calls import JSON, Call, Operation
from stepscope.web.api.listings import PAGE, TOP, TOP_ROWS, paging
from stepscope.web.api.parameters import INT64, LANGUAGE, Parameter
from stepscope.web.catalogue.entry import STATES

if TYPE_CHECKING:
    from stepscope.web.catalogue import Entry

_SORTED_BY = ("name", "state", "ranks", "world_size", "steps", "start_ns", "changed_ns", "input_bytes", "unread")
_SORTS = (*_SORTED_BY, *(f"-{name}" for name in _SORTED_BY))


async def _list(call: Call) -> Response:
    catalogue = call.service.catalogue
    tag = call.tag(call.service.started, catalogue.revision)
    if (same := call.unchanged(tag)) is not None:
        return same
    entries = catalogue.entries()

    def content() -> bytes:
        wanted = [entry for entry in entries if call.values["state"] in (None, entry.state)]
        part = _part(wanted, call.values)
        runs = [_described(call, wanted[place]) for place in part.rows["place"]]
        return call.encoded({**paging(call, part.found), "states": _counts(entries), "runs": runs})

    return call.sent(await call.apart(content), JSON, tag=tag)


def _part(entries: Sequence[Entry], values: dict[str, Any]) -> Part:
    """The entries that are looked for, by their places; nothing found is no error."""
    texts = ("name", "id", "relative", "state", "problem")
    numbers = ("ranks", "world_size", "steps", "start_ns", "changed_ns", "input_bytes", "unread")
    lists = ("formats", "frameworks", "devices")
    rows = [
        [
            place,
            *(getattr(entry, name) for name in texts),
            *(getattr(entry, name) for name in numbers),
            *(", ".join(getattr(entry, name)) for name in lists),
            entry.top.rule if entry.top else None,
        ]
        for place, entry in enumerate(entries)
    ]
    schema = {
        "place": pl.Int64,
        **dict.fromkeys(texts, pl.String),
        **dict.fromkeys(numbers, pl.Int64),
        **dict.fromkeys(lists, pl.String),
        "top": pl.String,
    }
    listing = Listing(values["search"] or None, None, values["sort"], values["top"] or TOP_ROWS, values["page"])
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    try:
        return listed(frame, listing)
    except NoRows:
        return Part(frame.clear(), 0)


def _counts(entries: Sequence[Entry]) -> dict[str, int]:
    states = [entry.state for entry in entries]
    return {state: states.count(state) for state in STATES}


def _described(call: Call, entry: Entry) -> dict[str, Any]:
    """A run for programs. Its path is told below the served directory only."""
    names = ("id", "name", "state", "problem", "ranks", "world_size", "steps", "start_ns", "changed_ns")
    path = f"/runs/{entry.id}"
    return {
        **{name: getattr(entry, name) for name in names},
        "progress": _progress_of(entry),
        "path": entry.relative,
        "input_bytes": entry.input_bytes,
        "formats": list(entry.formats),
        "frameworks": list(entry.frameworks),
        "devices": list(entry.devices),
        "unread": entry.unread,
        "findings": dict(entry.findings),
        "top": _top(entry, call.language),
        "links": {
            name: call.address(f"{path}/{name}" if name != "self" else path)
            for name in ("self", "progress", "overview", "findings", "pages", "tables", "figures", "report.html")
        },
    }


def _progress_of(entry: Entry) -> float:
    """How much of what is to be done with it is done; of what is ready, all."""
    return 1.0 if entry.state == "ready" else round(entry.progress, 4)


def _top(entry: Entry, language: Language) -> dict[str, Any] | None:
    finding = entry.top
    if finding is None:
        return None
    words = worded(finding, language)
    return {"rule": finding.rule, "severity": finding.severity, "summary": words.summary, "ranks": finding.ranks}


def _known(call: Call) -> Entry:
    return call.service.catalogue.entry(call.run)


async def _one(call: Call) -> Response:
    entry = _known(call)
    tag = call.tag(call.service.started, entry.stamp, entry.state, entry.progress, str(entry.top), entry.problem)
    return call.unchanged(tag) or call.sent(call.encoded(_described(call, entry)), JSON, tag=tag)


async def _progress(call: Call) -> Response:
    entry = _known(call)
    tag = call.tag(call.service.started, entry.stamp, entry.state, entry.progress, entry.problem)
    said = {
        "id": entry.id,
        "state": entry.state,
        "progress": _progress_of(entry),
        "problem": entry.problem,
        "is_readable": entry.state in ("analysing", "ready"),
    }
    return call.unchanged(tag) or call.sent(call.encoded(said), JSON, tag=tag)


_RUN = {"$ref": "#/components/schemas/Run"}

OPERATIONS = (
    Operation(
        "list_runs",
        "/runs",
        "List the runs below the served directories, the newest first.",
        _list,
        (
            Parameter("search", "text", "Only runs one of whose texts contains this (case-insensitive).", longest=500),
            Parameter("state", "text", "Only runs in this state.", choices=STATES),
            Parameter("sort", "text", "Sort by this; - in front for the largest first.", choices=_SORTS),
            TOP,
            PAGE,
            LANGUAGE,
            INT64,
        ),
        returns={JSON: {"$ref": "#/components/schemas/Runs"}},
    ),
    Operation(
        "show_run",
        "/runs/{run}",
        "Show one run: where it is, what recorded it, how far it is read, its top finding.",
        _one,
        (LANGUAGE, INT64),
        returns={JSON: _RUN},
    ),
    Operation(
        "show_progress",
        "/runs/{run}/progress",
        "Show how far a run is read: its state, and from 0 to 1 how much is done.",
        _progress,
        returns={JSON: {"$ref": "#/components/schemas/Progress"}},
    ),
)
