"""The gRPC service of a manager."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import grpc

from stepscope.live.control.board import CannotKeep
from stepscope.live.control.bounds import BOUNDS, Bounds
from stepscope.live.control.link import NotAccepted
from stepscope.live.control.manager import Manager
from stepscope.live.control.nodes import Node
from stepscope.live.control.registry import UnknownRank
from stepscope.live.control.wire import messages, services
from stepscope.live.messages import line_of
from stepscope.live.places import safe_name
from stepscope.live.switches import InvalidSwitch, changes_of

log = logging.getLogger("stepscope")

Subscribe = Callable[[Callable[[str, bytes], None]], Callable[[], None]]
"""Hands name and JSON of each event to a function from now on; returns a function that ends it."""


def serve_manager(
    server: Any,
    manager: Manager,
    *,
    status: Callable[[], bytes],
    subscribe: Subscribe,
    bounds: Bounds = BOUNDS,
) -> None:
    """Let a gRPC server answer for a manager.

    Args:
        status: Makes the answer of `Status`.
        subscribe: Supplies the events of `Events`.
    """
    wire, code = messages(), grpc.StatusCode
    subscribers = 0

    async def check_job(job: str, context: Any) -> None:
        if job and manager.job and safe_name(job) != manager.job:
            await context.abort(code.NOT_FOUND, f"this manager serves job {manager.job}, not {job}")

    class Service(services().ManagerServicer):  # type: ignore[misc] # made when it is loaded
        async def Node(self, requests: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802 - as in the protocol
            first = await anext(aiter(requests), wire.FromNode())
            if first.WhichOneof("body") != "hello":
                await context.abort(code.INVALID_ARGUMENT, "the first message must be hello")
            node = Node(first.hello.name, first.hello.host, bounds)
            try:
                await manager.registered(node, first.hello)
            except NotAccepted as error:
                await context.abort(code.FAILED_PRECONDITION, str(error))
            reading = asyncio.create_task(_read(manager, node, requests))
            try:
                async for message in node.outgoing():
                    yield message
            finally:
                reading.cancel()
                with suppress(asyncio.CancelledError):
                    await reading
                manager.disconnected(node)

        async def Switch(self, request: Any, context: Any) -> Any:  # noqa: N802
            await check_job(request.job, context)
            try:
                changes = changes_of(request.changes.items())
                if request.job and not manager.job:
                    await manager.take_job(safe_name(request.job))
                if not manager.job:
                    await context.abort(
                        code.FAILED_PRECONDITION,
                        "no worker has registered yet, so the manager does not know its job. Name the job, or wait",
                    )
                asked = await manager.board.request(changes, request.by[:200] or "unknown")
            except InvalidSwitch as error:
                await context.abort(code.INVALID_ARGUMENT, str(error))
            except CannotKeep as error:
                await context.abort(code.INTERNAL, str(error))
            if request.wait_s > 0:
                await manager.board.settled(min(request.wait_s, bounds.wait_s))
            said = dict(manager.board.acknowledged)
            failed = {rank: one.error for rank, one in said.items() if one.error}
            pending = sorted(rank for rank, one in said.items() if one.revision < asked.revision and not one.error)
            return wire.SwitchReply(
                revision=asked.revision,
                switches=asked.switches.as_names(),
                applied=sorted(said.keys() - failed.keys() - set(pending)),
                pending=pending,
                failed=failed,
            )

        async def Status(self, request: Any, context: Any) -> Any:  # noqa: N802
            await check_job(request.job, context)
            return wire.StatusReply(status=status())

        async def Events(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
            nonlocal subscribers
            await check_job(request.job, context)
            if subscribers >= bounds.most_subscribers:
                await context.abort(code.RESOURCE_EXHAUSTED, f"{subscribers} subscribers are served already")
            waiting = _Waiting(set(request.names), bounds.most_events)
            end = subscribe(waiting.put)
            subscribers += 1
            try:
                while True:
                    text, lost = await waiting.get()
                    yield wire.Event(json=text, lost=lost)
            finally:
                subscribers -= 1
                end()

        async def Capture(self, request: Any, context: Any) -> Any:  # noqa: N802
            await check_job(request.job, context)
            try:
                name = await manager.capture(
                    list(request.ranks), request.steps, shapes=request.shapes, stacks=request.stacks
                )
            except UnknownRank as error:
                await context.abort(code.NOT_FOUND, str(error))
            return wire.CaptureReply(id=name, **await _answers(manager, name, min(request.wait_s, bounds.wait_s)))

        async def Stacks(self, request: Any, context: Any) -> Any:  # noqa: N802
            await check_job(request.job, context)
            try:
                found = await manager.stacks(list(request.ranks))
            except UnknownRank as error:
                await context.abort(code.NOT_FOUND, str(error))
            return wire.StacksReply(
                stacks=[wire.RankStacks(rank=rank, text=text, error=error) for rank, (text, error) in found.items()]
            )

        async def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
            await check_job(request.job, context)
            try:
                name = await manager.check(list(request.ranks), list(request.kinds))
            except UnknownRank as error:
                await context.abort(code.NOT_FOUND, str(error))
            return wire.CheckReply(id=name, **await _answers(manager, name, min(request.wait_s, bounds.wait_s)))

    services().add_ManagerServicer_to_server(Service(), server)


async def _read(manager: Manager, node: Node, requests: Any) -> None:
    """Take what a node says, until its link ends."""
    try:
        async for request in requests:
            await manager.receive(node, request)
    finally:
        node.close()


async def _answers(manager: Manager, name: str, wait_s: float) -> dict[str, Any]:
    request = await manager.results(name, wait_s)
    lines = [line_of(answer).rstrip(b"\n") for _, answer in sorted(request.answers.items())]
    return {"results": lines, "pending": request.pending}


class _Waiting:
    """Events that wait for a subscriber; the oldest are dropped if it reads too slowly."""

    def __init__(self, names: set[str], most: int) -> None:
        self._names, self._most = names, most
        self._events: deque[bytes] = deque()
        self._some = asyncio.Event()
        self._lost = 0

    def put(self, name: str, text: bytes) -> None:
        """An event of some name."""
        if self._names and name not in self._names:
            return
        if len(self._events) >= self._most:
            self._events.popleft()
            self._lost += 1
        self._events.append(text)
        self._some.set()

    async def get(self) -> tuple[bytes, int]:
        """The next event, and how many were missed before it."""
        while not self._events:
            self._some.clear()
            await self._some.wait()
        lost, self._lost = self._lost, 0
        return self._events.popleft(), lost
