"""The whole application: what answers (REST interface, pages), behind what checks each request."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response

from stepscope._version import __version__
from stepscope.texts import Text
from stepscope.web.api import make_router
from stepscope.web.kept_files import KeptFiles
from stepscope.web.policies import PagePolicies
from stepscope.web.refusals import refusal
from stepscope.web.security import FAILED, PATH, Security
from stepscope.web.settings import Settings
from stepscope.web.signing_in import Door
from stepscope.web.sockets import be_patient, confine, forget_unseen

if TYPE_CHECKING:
    from stepscope.web.asking import Asking
    from stepscope.web.catalogue import Catalogue

RECONNECT_S = 2.0
"""Seconds that a page is kept for a browser whose connection was interrupted, and so for each that is left. After that
the browser loads it again, which shows the same, as its state is in its address."""

_PACKED = ("application/octet-stream", "application/vnd.apache.parquet", "application/zip", "application/gzip")
"""Content that compressing again makes no smaller."""


def make_app(settings: Settings, catalogue: Catalogue, asking: Asking, door: Door | None = None) -> Security:
    """The application, once a process: NiceGUI has one for all.

    Args:
        settings: Who may ask, and how much.
        catalogue: Which runs there are; it is closed with the application.
        asking: Answers questions about them; it is closed with the application.
        door: Tells who knows the token. Default: as the settings say.
    """

    files = KeptFiles()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        asking.close()
        files.close()
        catalogue.close()

    app = FastAPI(
        title="stepscope",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
    )
    app.add_exception_handler(Exception, _failed)
    app.state.files = files
    app.include_router(make_router(catalogue, asking, files))
    inner: Any = _compressed(PagePolicies(app, _add_pages(app, catalogue, asking, settings)))
    return Security(inner, settings, door or Door(settings.token, settings.port, settings.bounds))


def _add_pages(app: FastAPI, catalogue: Catalogue, asking: Asking, settings: Settings) -> Callable[[], None]:
    """Add the pages; what is returned is to be called after each of them is sent."""
    import nicegui
    from nicegui import core, ui

    from stepscope.web.ui import mount  # noqa: PLC0415

    mount(app, catalogue, asking, settings)
    ui.run_with(
        app,
        title="stepscope",
        dark=None,
        binding_refresh_interval=None,
        reconnect_timeout=RECONNECT_S,
        cache_control_directives="private, max-age=31536000, immutable",
        gzip_middleware_factory=None,
        tailwind=False,
        prod_js=True,
        show_welcome_message=False,
    )
    nicegui.app.add_exception_handler(404, _missing)  # its own would show the error
    nicegui.app.add_exception_handler(Exception, _failed)
    confine(core.sio, core.app.config, settings.bounds)
    nicegui.app.on_startup(lambda: be_patient(core.sio))
    return lambda: forget_unseen(nicegui.Client.instances, settings.bounds.unseen)


async def _failed(request: Request, _: Exception) -> Response:
    """What a client gets when something fails unexpectedly; `Security` reports it."""
    return _refusal(request, 500, FAILED)


async def _missing(request: Request, _: Exception) -> Response:
    """What a client gets for an address at which there is nothing."""
    return _refusal(request, 404, PATH)


def _refusal(request: Request, status: int, said: Text) -> Response:
    query = request.scope.get("query_string", b"")
    reply = refusal(status, said, request.scope["path"], query, dict(request.headers))
    return Response(reply.body, reply.status, {name.decode(): value.decode() for name, value in reply.headers})


def _compressed(app: Any) -> Any:
    options: dict[str, Any] = {"minimum_size": 1000, "compresslevel": 5}
    name = "exclude_content_types"
    if name in inspect.signature(GZipMiddleware.__init__).parameters:  # older releases compress all
        from starlette.middleware import gzip  # noqa: PLC0415

        options[name] = (*gzip.DEFAULT_EXCLUDED_CONTENT_TYPES, *_PACKED)
    return GZipMiddleware(app, **options)
