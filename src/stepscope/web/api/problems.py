"""Errors as problem details (RFC 9457): what is wrong, where, and what there is instead; nothing about the server."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from stepscope.errors import Cancelled, NoRows, StepscopeError, Unavailable, UnknownColumn
from stepscope.present import printable
from stepscope.references import Reference, as_named
from stepscope.web.addresses import PREFIX
from stepscope.web.errors import AnswerFailed, NotReady, RunBroken, UnknownRun
from stepscope.web.kept_files import TooManyFiles

MEDIA_TYPE = "application/problem+json"
LONGEST_DETAIL = 4_000
RETRY_S = 2
"""Seconds after which a client may ask again for a run that is being read."""

KINDS: Mapping[str, tuple[int, str, str]] = {
    "bad-request": (400, "The request is not possible", "A parameter or the body is wrong; `detail` says how."),
    "unknown-column": (400, "There is no such column", "`detail` lists the columns."),
    "unknown-run": (404, "There is no such run", "`/runs` lists the runs."),
    "unknown-page": (404, "There is no such page, table, figure or rule", "`detail` lists those there are."),
    "no-rows": (404, "No row is looked for", "A search or filter leaves nothing; `detail` says what there is."),
    "not-recorded": (404, "This run does not have it", "`detail` says what is missing, and how to record it."),
    "not-found": (404, "There is nothing at this address", "`/docs` lists all addresses."),
    "wrong-method": (405, "This address does not take this method", "`Allow` lists the methods."),
    "not-ready": (409, "The run is being read", "Ask again after `Retry-After` seconds."),
    "gone": (410, "The run is gone", "Its files were removed or cannot be reached."),
    "too-large": (413, "The request is too large", "`detail` says how large it may be."),
    "wrong-content": (415, "The body is not JSON", "Send `Content-Type: application/json`."),
    "broken-run": (422, "The run cannot be read", "`detail` says why."),
    "failed": (500, "This failed", "A mistake in stepscope; the server's log has the details."),
    "busy": (503, "The server is busy", "Ask again after `Retry-After` seconds."),
}
"""Kinds of problems: status, title, and what to do. The `type` of a problem leads to its description."""


class ApiProblem(StepscopeError):
    """A problem of a known kind.

    Args:
        kind: Its kind, see `KINDS`.
        detail: What is wrong here, and what to do.
        headers: Further headers.
        more: Further members.
    """

    def __init__(self, kind: str, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.kind = kind
        self.headers = dict(headers or {})
        self.more = more


class BadRequest(ApiProblem):
    """A request that is not possible as it is."""

    def __init__(self, detail: str, **more: Any) -> None:
        super().__init__("bad-request", detail, **more)


_OF_ERRORS: tuple[tuple[type[StepscopeError], str], ...] = (
    (UnknownRun, "unknown-run"),
    (NotReady, "not-ready"),
    (RunBroken, "broken-run"),
    (AnswerFailed, "failed"),
    (TooManyFiles, "busy"),
    (Cancelled, "busy"),
    (NoRows, "no-rows"),
    (UnknownColumn, "unknown-column"),
    (Unavailable, "not-recorded"),
    (StepscopeError, "bad-request"),
)
_OF_STATUSES = {
    404: "not-found",
    405: "wrong-method",
    413: "too-large",
    415: "wrong-content",
    503: "busy",
}
_LATER = ("not-ready", "busy")


def response_of(error: Exception, request: Request) -> Response:
    """The response to a request that failed."""
    problem = problem_of(error)
    status, title, _ = KINDS[problem.kind]
    path = request.scope.get("root_path", "") + PREFIX
    content = {
        "type": f"{path}/docs#{problem.kind}",
        "title": title,
        "status": status,
        "detail": _shortened(in_words_of_queries(printable(problem.marked, keep="\n"))),
        "instance": request.url.path,
        **problem.more,
    }
    later = {"Retry-After": str(RETRY_S)} if problem.kind in _LATER else {}
    headers = {"Cache-Control": "no-store", **later, **problem.headers}
    return Response(msgspec.json.encode(content), status, headers, MEDIA_TYPE)


def problem_of(error: Exception) -> ApiProblem:
    """The problem that an error is; one that nobody foresaw is logged and says nothing."""
    if isinstance(error, ApiProblem):
        return error
    if isinstance(error, HTTPException):
        kind = _OF_STATUSES.get(error.status_code, "failed" if error.status_code >= 500 else "bad-request")
        return ApiProblem(kind, error.detail or HTTPStatus(error.status_code).phrase, headers=error.headers)
    for known, kind in _OF_ERRORS:
        if isinstance(error, known):
            return ApiProblem(kind, error.marked)
    logging.getLogger(__name__).error("a question failed", exc_info=error)
    return ApiProblem("failed", f"{type(error).__name__}. The log of the server has the details; other pages work.")


def in_words_of_queries(text: str) -> str:
    """A text with the references in it (`stepscope.references`) as parameters of a query, pages and tables.

    Examples:
        >>> in_words_of_queries("«--base-ranks» 7: choose another; «--json» has them, «`stepscope ops`» more")
        'base_ranks 7: choose another; this JSON has them, page `ops` more'
    """
    return as_named(text, _in_query)


def _in_query(one: Reference) -> str:
    if one.kind != "option":
        return f"{one.kind} `{one.name}`"
    return "this JSON" if one.name == "json" else one.name.replace("-", "_")


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_DETAIL else text[:LONGEST_DETAIL] + " ..."
