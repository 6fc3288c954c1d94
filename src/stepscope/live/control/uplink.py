"""The proxy's link to the manager: held open, and opened again whenever it breaks."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio

from stepscope.live.control.bounds import Bounds
from stepscope.live.control.outbox import BATCH_BYTES, Batch, Outbox
from stepscope.live.control.security import Security
from stepscope.live.control.wire import messages, services

log = logging.getLogger("stepscope")

_FIRST_WAIT_S = 0.05


class Uplink:
    """One manager, as seen from a node.

    Args:
        target: `HOST:PORT` or `unix:PATH`.
        outbox: What goes to the manager.
        hello: Makes the first message, and puts what a new manager must know into the outbox.
        receive: Gets what the manager sends.
    """

    def __init__(
        self,
        target: str,
        security: Security,
        bounds: Bounds,
        outbox: Outbox,
        hello: Callable[[], Any],
        receive: Callable[[Any], None],
    ) -> None:
        self.target = target
        self.connected = False
        self._security, self._bounds, self._outbox = security, bounds, outbox
        self._hello, self._receive = hello, receive
        self._problem = ""

    async def run(self) -> None:
        """Keep the link up until this is cancelled."""
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                await self._session()
                self._report("the manager has closed the link")
            except grpc.aio.AioRpcError as error:
                self._report(error.details() or error.code().name)
            except asyncio.InvalidStateError:  # it broke while something was written
                self._report("the link is broken")
            except Exception as error:  # e.g. a certificate that is being replaced; a proxy must not give up
                self._report(f"{type(error).__name__}: {error}")
            if self.connected:
                wait_s = _FIRST_WAIT_S
            self.connected = False
            # not all nodes of a large job at once
            await asyncio.sleep(wait_s * random.uniform(0.5, 1))
            wait_s = min(wait_s * 2, self._bounds.retry_s)

    def _report(self, problem: str) -> None:
        """Once for each problem, not for each attempt."""
        if problem != self._problem:
            self._problem = problem
            log.warning("manager %s: %s. Trying again", self.target, problem)

    async def _session(self) -> None:
        async with self._security.channel(self.target, self._bounds) as channel:
            call = services().ManagerStub(channel).Node(metadata=self._security.metadata)
            writing: asyncio.Task[None] | None = None
            try:
                await call.write(self._hello())
                while (message := await call.read()) is not grpc.aio.EOF:
                    if not self.connected:
                        self.connected, self._problem = True, ""
                        log.info("connected to manager %s", self.target)
                    self._receive(message)
                    if writing is None:
                        writing = asyncio.create_task(self._write(call))
            finally:
                if writing is not None:
                    writing.cancel()
                    with suppress(asyncio.CancelledError):
                        await writing

    async def _write(self, call: Any) -> None:
        while True:
            batch = await self._outbox.take()
            try:
                for message in as_messages(batch):
                    await call.write(message)
            except BaseException as error:
                self._outbox.put_back(batch)
                if isinstance(error, (grpc.aio.AioRpcError, asyncio.InvalidStateError)):
                    return  # reading ends as well, and knows why
                raise


def as_messages(batch: Batch) -> list[Any]:
    """A batch as the messages of the protocol."""
    wire = messages()
    made = [wire.FromNode(left=wire.Left(rank=rank, started_at_ns=at_ns)) for rank, at_ns in batch.left]
    packed = wire.Lines(lost=batch.lost)
    size = 0
    for rank, line in (*batch.lines, *batch.results, *batch.digests):
        if size and size + len(line) > BATCH_BYTES:
            made.append(wire.FromNode(lines=packed))
            packed, size = wire.Lines(), 0
        packed.lines.add(rank=rank, line=line)
        size += len(line)
    if size or packed.lost:
        made.append(wire.FromNode(lines=packed))
    return [*made, *batch.answers]
