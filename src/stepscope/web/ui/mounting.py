"""The addresses of pages, and what answers at each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response
from nicegui import ui

from stepscope.errors import StepscopeError
from stepscope.web.errors import UnknownRun
from stepscope.web.live_jobs import LiveJob
from stepscope.web.perfetto import mount_perfetto
from stepscope.web.ui.context import Context, Web
from stepscope.web.ui.frame import ASSETS, assets, frame
from stepscope.web.ui.html import paragraph
from stepscope.web.ui.wording import worded

if TYPE_CHECKING:
    from stepscope.web.asking import Asking
    from stepscope.web.catalogue import Catalogue
    from stepscope.web.settings import Settings

ASKED_AGAIN = {"Cache-Control": "no-cache"}


def mount(app: FastAPI, catalogue: Catalogue, asking: Asking, settings: Settings) -> None:
    """Make the pages known to NiceGUI, which the caller mounts, and the style and script to the app.

    NiceGUI has one set of pages in a process, so mounting again replaces the runs that they are about.
    """
    files = getattr(app.state, "files", None)
    if files is not None:
        mount_perfetto(app, catalogue, files)
    web = Web(catalogue, asking, settings, files)

    @app.get(ASSETS + "{name}", include_in_schema=False)
    def asset(request: Request, name: str) -> Response:
        found = assets().get(name)
        if found is None:
            return Response(status_code=404)
        headers = {**ASKED_AGAIN, "ETag": found.tag}
        if request.headers.get("if-none-match", "").removeprefix("W/") == found.tag:
            return Response(status_code=304, headers=headers)
        return Response(found.text, media_type=found.mime, headers=headers)

    @ui.page("/")
    async def runs(request: Request) -> None:
        from stepscope.web.ui.pages import runs as page

        await page.build(Context.of(web, request))

    @ui.page("/compare")
    async def compare(request: Request) -> None:
        from stepscope.web.ui.pages import compare as page

        await page.build(Context.of(web, request))

    job = LiveJob(settings.live) if settings is not None and settings.live else None

    @ui.page("/live")
    async def live(request: Request) -> None:
        from stepscope.web.ui.pages import live as page

        await page.build(Context.of(web, request), job)

    @ui.page("/runs/{run}")
    async def overview(request: Request, run: str) -> None:
        await _of_run(web, request, run, "")

    @ui.page("/runs/{run}/{page}")
    async def of_run(request: Request, run: str, page: str) -> None:
        await _of_run(web, request, run, page)


async def _of_run(web: Web, request: Request, run: str, name: str) -> None:
    """Build a page of a run, or say that there is no such run or page."""
    from stepscope.web.ui.declared import build
    from stepscope.web.ui.site_map import page_named, site_map

    context = Context.of(web, request)
    try:
        context.entry = web.catalogue.entry(run)
    except UnknownRun as error:
        _refuse(context, context.word("runs"), error)
        return
    page = page_named(name)
    if page is None:
        with frame(context, context.word("overview"), site_map()):
            paragraph(context.word("no_page", name=name), "empty")
        ui.context.client.status_code = 404
        return
    await build(context, page)


def _refuse(context: Context, title: str, error: StepscopeError) -> None:
    with frame(context, title):
        paragraph(worded(error.marked, context.language), "empty")
    ui.context.client.status_code = 404
