"""The REST interface: the pages, tables, figures, reports and timelines of runs under `/api/v1`."""

from __future__ import annotations

import secrets
from functools import cache
from typing import TYPE_CHECKING

import msgspec
from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stepscope.web.addresses import PREFIX
from stepscope.web.api import (
    comparisons,
    figures,
    openapi,
    overviews,
    pages,
    queries,
    reference,
    reports,
    runs,
    tables,
    timeline,
)
from stepscope.web.api.calls import ALWAYS, JSON, Service
from stepscope.web.api.routing import add_routes, guarded
from stepscope.web.kept_files import KeptFiles

if TYPE_CHECKING:
    from stepscope.web.asking import Asking
    from stepscope.web.catalogue import Catalogue

__all__ = ["OPERATIONS", "PREFIX", "make_router"]

_SUBJECTS = (runs, overviews, pages, comparisons, figures, tables, reports, timeline, reference)

OPERATIONS = (
    *(operation for subject in _SUBJECTS for operation in subject.OPERATIONS),
    *queries.OPERATIONS,
)
"""All that the API does."""


def make_router(catalogue: Catalogue, asking: Asking, files: KeptFiles | None = None) -> APIRouter:
    """The routes of the API, below `/api/v1`.

    Args:
        catalogue: Which runs there are.
        asking: Answers questions about them.
        files: Keeps files that are made for clients. Default: a place of its own, deleted when the process ends.
    """
    service = Service(catalogue, asking, files or KeptFiles(), secrets.token_hex(8))
    router = APIRouter()
    router.routes += [
        Route(f"{PREFIX}/openapi.json", guarded(_document), methods=["GET"], name="openapi"),
        Route(f"{PREFIX}/docs", guarded(_docs), methods=["GET"], name="docs"),
    ]
    add_routes(router, service, OPERATIONS)
    return router


@cache
def _encoded(root: str) -> bytes:
    return msgspec.json.encode(openapi.document(OPERATIONS, root))


async def _document(request: Request) -> Response:
    content = await run_in_threadpool(_encoded, request.scope.get("root_path", ""))
    return Response(content, 200, ALWAYS, JSON)


async def _docs(request: Request) -> Response:
    content = await run_in_threadpool(_page, request.scope.get("root_path", ""))
    return Response(content, 200, ALWAYS, "text/html")


@cache
def _page(root: str) -> str:
    return openapi.page(openapi.document(OPERATIONS, root))
