"""Asking a manager: for the command line and for other programs.

async with connected() as manager:
    print(await manager.switch({"communication": "on"}, wait_s=5))
"""

from __future__ import annotations

import asyncio
import getpass
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import grpc
import grpc.aio

from stepscope.errors import StepscopeError
from stepscope.live import places
from stepscope.live.control.security import Security, address_of
from stepscope.live.control.wire import messages, services
from stepscope.live.messages import Captured, Checked, from_worker

MANAGER_VARIABLE = "STEPSCOPE_LIVE_MANAGER"
"""Address of the manager, `HOST:PORT`."""
ANSWERS_WITHIN_S = 10.0
"""A manager answers within this time, beyond what it was asked to wait."""

T = TypeVar("T")


@dataclass(frozen=True)
class Switched:
    """The answer to a switch.

    Args:
        revision: Of the state that is in force from now on.
        on: Names of the kinds that are on.
        applied: Ranks that have applied it.
        pending: Ranks that have not yet.
        failed: Ranks that could not, with the reason.
    """

    revision: int
    on: list[str]
    applied: list[int]
    pending: list[int]
    failed: dict[int, str]


@dataclass(frozen=True)
class Answers:
    """Answers to a capture or check, by rank, and the ranks that have not answered."""

    id: str
    results: list[Captured | Checked]
    pending: list[int]


class NoManager(StepscopeError):
    """Nobody answers at an address, and why."""

    def __init__(self, target: str, reason: str) -> None:
        super().__init__(
            f"{target}: no manager answers ({reason}). Start one with `stepscope live manager`, or give its address "
            "with --manager HOST:PORT"
        )
        self.target, self.reason = target, reason


class Client:
    """A connection to a manager; see `connected`. Every call raises StepscopeError if it fails, with the reason.

    Args:
        job: If it is given, a manager of another job refuses.
    """

    def __init__(self, channel: Any, security: Security, target: str, job: str = "") -> None:
        self._stub = services().ManagerStub(channel)
        self._security, self._target, self._job = security, target, job

    async def switch(self, changes: Mapping[str, str], *, by: str = "", wait_s: float = 0.0) -> Switched:
        """Change switches, e.g. `{"step": "on"}`; the change is on disk when this returns.

        Args:
            by: Who asks, for the log; default: this user on this host.
            wait_s: Wait up to this time until all ranks have applied it.
        """
        request = messages().SwitchRequest(
            job=self._job, changes=dict(changes), by=by or f"{_user()}@{socket.gethostname()}", wait_s=wait_s
        )
        reply = await self._call(self._stub.Switch, request, wait_s)
        return Switched(
            reply.revision, list(reply.switches), list(reply.applied), list(reply.pending), dict(reply.failed)
        )

    async def status(self) -> bytes:
        """What is known of the job, as JSON (`live.show.status.from_json` reads it)."""
        reply = await self._call(self._stub.Status, messages().StatusRequest(job=self._job))
        return bytes(reply.status)

    async def events(self, names: Sequence[str] = ()) -> AsyncIterator[tuple[bytes, int]]:
        """Each event from now on as JSON (`live.show.event_types.from_json` reads it), and how many were missed before
        it. Ends with StepscopeError when the manager goes away."""
        request = messages().EventsRequest(job=self._job, names=names)
        try:
            async for event in self._stub.Events(request, metadata=self._security.metadata):
                yield bytes(event.json), event.lost
        except grpc.aio.AioRpcError as error:
            raise self._failed(error) from error

    async def capture(
        self, ranks: Sequence[int], steps: int, *, shapes: bool = True, stacks: bool = False, wait_s: float = 0.0
    ) -> Answers:
        """Profile some steps of some ranks."""
        request = messages().CaptureRequest(
            job=self._job, ranks=ranks, steps=steps, shapes=shapes, stacks=stacks, wait_s=wait_s
        )
        return _answers(await self._call(self._stub.Capture, request, wait_s))

    async def check(self, ranks: Sequence[int], kinds: Sequence[str], *, wait_s: float = 0.0) -> Answers:
        """Measure devices (`gemm`) and links (`link`) of some ranks between two steps."""
        request = messages().CheckRequest(job=self._job, ranks=ranks, kinds=kinds, wait_s=wait_s)
        return _answers(await self._call(self._stub.Check, request, wait_s))

    async def stacks(self, ranks: Sequence[int] = ()) -> dict[int, tuple[str, str]]:
        """Python stacks of some ranks, by default of all: text, or why there is none."""
        reply = await self._call(self._stub.Stacks, messages().StacksRequest(job=self._job, ranks=ranks), 60.0)
        return {one.rank: (one.text, one.error) for one in reply.stacks}

    async def _call(self, method: Any, request: Any, wait_s: float = 0.0) -> Any:
        try:
            return await method(request, metadata=self._security.metadata, timeout=wait_s + ANSWERS_WITHIN_S)
        except grpc.aio.AioRpcError as error:
            raise self._failed(error) from error

    def _failed(self, error: Any) -> StepscopeError:
        code, details = error.code(), error.details() or error.code().name
        if code == grpc.StatusCode.UNAVAILABLE:
            return NoManager(self._target, _reason(details))
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            return StepscopeError(
                f"{self._target}: the manager has not answered in time. Try again, or look at its log"
            )
        return StepscopeError(f"{self._target}: {details}")


def _reason(details: str) -> str:
    """Why a connection failed, without what gRPC says around it.

    Examples:
        >>> _reason("last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: Connection refused")
        'Connection refused'
        >>> _reason("errors resolving a:1: [field:hostname lookup error:address lookup failed for a:1: Not found]")
        'Not found'
    """
    for begin in ("Failed to connect to remote host: ", "address lookup failed for "):
        if begin in details:
            return details.rpartition(": ")[2].rstrip("]")
    return details


@asynccontextmanager
async def connected(manager: str = "", *, security: Security | None = None, job: str = "") -> AsyncIterator[Client]:
    """A connection to a manager: `HOST:PORT`; by default the one of this user on this node, or that in
    `STEPSCOPE_LIVE_MANAGER`."""
    chosen = security or Security.stated()
    target = target_of(manager or os.environ.get(MANAGER_VARIABLE, ""))
    async with chosen.channel(target) as channel:
        yield Client(channel, chosen, target, job)


def call(
    ask: Callable[[Client], Awaitable[T]], manager: str = "", *, security: Security | None = None, job: str = ""
) -> T:
    """Ask a manager one thing, from code that is not asynchronous.

    Raises:
        StepscopeError: If it cannot be reached, or refuses.
    """

    async def run() -> T:
        async with connected(manager, security=security, job=job) as client:
            return await ask(client)

    return asyncio.run(run())


def stated_manager() -> str:
    """The address that a proxy uses unless it is told one: `STEPSCOPE_LIVE_MANAGER`, else what the launcher of the job
    names as its first host; empty for this node."""
    return next(filter(None, map(os.environ.get, (MANAGER_VARIABLE, "MASTER_ADDR", "MS_SCHED_HOST"))), "") or ""


def target_of(manager: str) -> str:
    """An address as gRPC takes it, with the default port.

    Raises:
        StepscopeError: If it is no address.
    """
    if not manager:
        local = places.manager_socket_path()
        return f"unix:{local}" if _is_listening(local) else address_of(places.LOOPBACK, places.MANAGER_PORT)
    if manager.startswith("unix:"):
        return manager
    try:
        parts = urlsplit(f"//[{manager}]" if manager.count(":") > 1 and "[" not in manager else f"//{manager}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host:
        raise StepscopeError(f"{manager}: is not HOST or HOST:PORT. Example: --manager host7:{places.MANAGER_PORT}")
    return address_of(host, port or places.MANAGER_PORT)


def _is_listening(path: Path) -> bool:
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
        tried.connect(str(path))
        return True
    return False


def _answers(reply: Any) -> Answers:
    lines = [from_worker(line) for line in reply.results]
    return Answers(reply.id, [one for one in lines if isinstance(one, (Captured, Checked))], list(reply.pending))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return str(os.getuid())
