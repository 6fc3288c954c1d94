"""From operations to routes: each request is answered or becomes a problem, whatever is wrong with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from stepscope.web.addresses import PREFIX
from stepscope.web.api.calls import Call, Operation, Service
from stepscope.web.api.problems import ApiProblem, response_of

Endpoint = Callable[[Request], Awaitable[Response]]


def add_routes(router: APIRouter, service: Service, operations: Sequence[Operation]) -> None:
    """Add the route of each operation to a router, then one that answers all other addresses below the prefix."""
    routes = []
    for operation in operations:
        path = PREFIX + operation.path
        routes.append(Route(path, _endpoint(service, operation), methods=[operation.method], name=operation.identity))
    router.routes.extend([*routes, Route(PREFIX + "{rest:path}", _Otherwise(routes), include_in_schema=False)])


def guarded(answer: Endpoint) -> Endpoint:
    """An endpoint of which every failure becomes a problem, and which sends no body to who asks for none."""

    async def endpoint(request: Request) -> Response:
        try:
            response = await answer(request)
        except Exception as error:
            response = response_of(error, request)
        return _bare(response) if request.method == "HEAD" else response

    return endpoint


def _endpoint(service: Service, operation: Operation) -> Endpoint:
    async def answer(request: Request) -> Response:
        return await operation.answer(Call(service, request, operation))

    return guarded(answer)


class _Otherwise:
    """Answers all other requests, with any method: what is wrong with them."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = routes
        self._answer = guarded(self._refused)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answer(Request(scope, receive, send))
        await response(scope, receive, send)

    async def _refused(self, request: Request) -> Response:
        near = (route for route in self._routes if route.matches(request.scope)[0] == Match.PARTIAL)
        if allowed := {method for route in near for method in route.methods or ()}:
            said = ", ".join(sorted(allowed))
            raise ApiProblem(
                "wrong-method", f"this address takes {said}, not {request.method[:20]}", headers={"Allow": said}
            )
        raise ApiProblem("not-found", f"there is nothing at this address. {PREFIX}/docs lists all addresses")


def _bare(response: Response) -> Response:
    """A response without its body, with the headers that it would have."""
    if isinstance(response, StreamingResponse):
        response.body_iterator = _nothing()
    elif hasattr(response, "body"):
        response.body = b""
    return response


async def _nothing() -> AsyncIterator[bytes]:
    parts: tuple[bytes, ...] = ()
    for part in parts:
        yield part
