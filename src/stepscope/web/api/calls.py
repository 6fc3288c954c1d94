"""A request to the API: whom it asks about, what it chose, and how its answer is sent; and what an operation is."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from stepscope._version import __version__
from stepscope.web.addresses import PREFIX
from stepscope.web.api.content import encoded
from stepscope.web.api.parameters import Parameter, read_all
from stepscope.web.api.problems import RETRY_S, ApiProblem

if TYPE_CHECKING:
    from stepscope.present import Language
    from stepscope.web.asking import Asking
    from stepscope.web.catalogue import Catalogue, Entry
    from stepscope.web.kept_files import KeptFiles

T = TypeVar("T")

JSON = "application/json"
LONGEST_NAME = 200
"""Characters of a name in an address."""

ALWAYS = {"Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff"}
"""Headers of every answer: a client may keep it, and asks each time whether it still holds."""

Place = Mapping[str, str]
"""Names in an address."""

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Service:
    """What the API asks.

    Args:
        catalogue: Which runs there are.
        asking: Answers questions about them, off the event loop.
        files: Files that are made for clients.
        started: Differs each time the server starts.
    """

    catalogue: Catalogue
    asking: Asking
    files: KeptFiles
    started: str


@dataclass(frozen=True)
class Operation:
    """One thing that the API does.

    Args:
        identity: Its name in the OpenAPI document.
        path: Its address below the prefix, with names in braces.
        help: What it does: a sentence, then more.
        answer: Does it.
        parameters: What its query may choose; where that depends on the address, a function of the names in it.
        returns: Media types of its answers, with the schema of what is JSON.
        problems: Kinds of problems that it has, beside those that all have.
        variants: Names with which the document lists it, if their parameters differ.
        names: Of names in the address, those there are.
        body: Schema of the JSON that is sent to it.
        subject: Heading under which it is listed.
    """

    identity: str
    path: str
    help: str
    answer: Callable[[Call], Awaitable[Response]]
    parameters: Sequence[Parameter] | Callable[[Place], Sequence[Parameter]] = ()
    returns: Mapping[str, Schema] = field(default_factory=lambda: {JSON: {"type": "object"}})
    problems: Sequence[str] = ()
    variants: Sequence[Place] = ()
    names: Mapping[str, Sequence[str]] | Callable[[Place], Mapping[str, Sequence[str]]] = field(default_factory=dict)
    body: Schema | None = None
    subject: str = "Runs"

    @property
    def method(self) -> Literal["GET", "POST"]:
        """Its method; what reads also takes HEAD."""
        return "GET" if self.body is None else "POST"

    @property
    def is_about_run(self) -> bool:
        """Whether its address names a run."""
        return "{run}" in self.path

    def parameters_at(self, place: Place) -> Sequence[Parameter]:
        """What its query may choose at an address.

        Raises:
            ApiProblem: If there is nothing at that address.
        """
        return self.parameters(place) if callable(self.parameters) else self.parameters

    def names_at(self, place: Place) -> Mapping[str, Sequence[str]]:
        """Of names in its address, those there are."""
        return self.names(place) if callable(self.names) else self.names


class Call:
    """A request to an operation.

    Args:
        service: What the API asks.
        request: The request.
        operation: What is to be done.

    Raises:
        ApiProblem: If there is nothing at this address, or a parameter is not possible.
    """

    def __init__(self, service: Service, request: Request, operation: Operation) -> None:
        self.service, self.request, self.operation = service, request, operation
        self.place: dict[str, str] = dict(request.path_params)
        for name, value in self.place.items():
            if len(value) > LONGEST_NAME or "\0" in value:
                kind = "unknown-run" if name == "run" else "unknown-page"
                raise ApiProblem(kind, f"there is no {name} of this name, which is longer than any, or none at all")
        self.values = read_all(operation.parameters_at(self.place), request.query_params)

    @property
    def language(self) -> Language:
        """The chosen language."""
        chosen: Language = self.values.get("lang", "en")
        return chosen

    @property
    def run(self) -> str:
        """Id of the run that it is about."""
        return self.place["run"]

    @property
    def runs(self) -> list[str]:
        """Ids of the runs that it is about: that in the address, or the sides of a comparison."""
        if self.operation.is_about_run:
            return [self.run]
        return [run for side in ("base", "new") if (run := self.values.get(side))]

    async def asked(self, question: Hashable, compute: Callable[[], T]) -> T:
        """What `compute` gives, kept under a question for all who ask it; called off the event loop."""
        return await self.service.asking.ask(question, compute, self.runs)

    def chosen(self, *names: str) -> dict[str, Any]:
        """Some of the chosen values."""
        return {name: self.values[name] for name in names}

    def entry(self, run: str | None = None) -> Entry:
        """A run that can be asked; by default, the one in the address.

        Raises:
            UnknownRun: If there is none.
            ApiProblem: If it is still being read, cannot be read, or is gone.
        """
        run = self.run if run is None else run
        entry = self.service.catalogue.entry(run)
        if entry.state in ("waiting", "reading"):
            raise ApiProblem(
                "not-ready",
                entry.problem or f"run {entry.id} is being read: {entry.progress:.0%} is done. Ask again later",
                headers={"Retry-After": str(RETRY_S)},
                state=entry.state,
                progress=round(entry.progress, 4),
            )
        if entry.state in ("failed", "gone"):
            otherwise = "its files are gone" if entry.state == "gone" else "it cannot be read"
            kind = "gone" if entry.state == "gone" else "broken-run"
            raise ApiProblem(kind, entry.problem or f"run {entry.id}: {otherwise}", state=entry.state)
        return entry

    def question(self, *stamps: Hashable) -> tuple[Hashable, ...]:
        """All on which the answer depends, if the runs with these stamps are all that it is about."""
        values = tuple(sorted((name, value) for name, value in self.values.items() if value is not None))
        return ("api", self.operation.identity, tuple(sorted(self.place.items())), values, *stamps)

    def tag(self, *facts: Hashable) -> str:
        """The ETag of an answer that depends on these facts, beside what the request chose."""
        content = repr((__version__, *self.question(*facts)))
        return f'W/"{hashlib.sha256(content.encode("utf-8", "backslashreplace")).hexdigest()[:32]}"'

    def unchanged(self, tag: str) -> Response | None:
        """The response that says that the client has this answer already; None if it has not."""
        given = self.request.headers.get("if-none-match", "")
        tags = {each.strip().removeprefix("W/") for each in given.split(",")}
        if "*" not in tags and tag.removeprefix("W/") not in tags:
            return None
        return Response(status_code=304, headers={**ALWAYS, "ETag": tag, "Vary": "Accept"})

    async def kept(
        self, stamps: Sequence[Hashable], compute: Callable[[], Any], *, media_type: str = JSON, **headers: str
    ) -> Response:
        """The answer that `compute` gives, as JSON unless it is bytes; computed once for all who ask for it.

        Args:
            stamps: Stamps of the runs that it is about.
            compute: Gives it; it is called off the event loop, and not if the client has the answer already.
        """
        tag = self.tag(*stamps, media_type)
        if (same := self.unchanged(tag)) is not None:
            return same
        body = await self.asked(self.question(*stamps, media_type), lambda: self._bytes(compute()))
        return self.sent(body, media_type, tag=tag, **headers)

    def encoded(self, found: Any) -> bytes:
        """Plain data with frames in it as JSON, with large numbers as the request wants them."""
        return encoded(found, big_as_text=self.values.get("int64") == "text")

    async def apart(self, compute: Callable[[], T]) -> T:
        """What `compute` gives, off the event loop; for what is not worth keeping."""
        return await run_in_threadpool(compute)

    def _bytes(self, found: Any) -> bytes:
        return found if isinstance(found, bytes) else self.encoded(found)

    def sent(self, body: bytes, media_type: str = JSON, *, tag: str = "", **headers: str) -> Response:
        """An answer."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        tagged = {"ETag": tag, "Vary": "Accept"} if tag else {}
        return Response(body, 200, {**ALWAYS, **tagged, **named}, media_type)

    def address(self, path: str, **changed: Any) -> str:
        """An address of the API with a query."""
        pairs = [(name, _in_query(value)) for name, value in changed.items() if value is not None]
        root: str = self.request.scope.get("root_path", "")
        return root + PREFIX + path + (f"?{urlencode(pairs)}" if pairs else "")


def _in_query(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def joined(*groups: Iterable[Parameter]) -> tuple[Parameter, ...]:
    """Several groups of parameters as one."""
    return tuple(each for group in groups for each in group)
