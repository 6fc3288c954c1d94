"""A gRPC server in a thread, with the board of a job."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import grpc

from stepscope.live.control.board import Board
from stepscope.live.switching.data_trace import add_to, serves

T = TypeVar("T")


class Served:
    """A board, and the service on a free port of loopback, until the block ends."""

    def __init__(self, *names: str, file: Path | None = None) -> None:
        self.address = ""
        self.board: Board
        self._names, self._file = names, file
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Served:
        self._thread.start()

        async def start() -> Any:
            self.board = Board(self._file)
            server = grpc.aio.server()
            add_to(server, self.board, serves(*self._names))
            self.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
            await server.start()
            return server

        self._server = self.run(start)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        async def stop() -> None:
            await self._server.stop(None)

        self.run(stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
        self._loop.close()

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Run something in the server's event loop, and return its result."""

        async def awaited() -> T:
            return await function()

        return asyncio.run_coroutine_threadsafe(awaited(), self._loop).result(20)
