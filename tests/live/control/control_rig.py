"""Manager, proxies and simulated workers in one event loop, connected by real gRPC and Unix sockets."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc")
sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))

from simulated_workers import SimulatedWorker
from stepscope.live.composing import views_of
from stepscope.live.control.bounds import Bounds
from stepscope.live.control.client import Client, connected
from stepscope.live.control.manager import Manager
from stepscope.live.control.proxy import Proxy
from stepscope.live.control.security import Security
from stepscope.live.control.serving import ManagerServer, ProxyServer
from stepscope.live.control.sockets import PrivateSocket

QUICK = Bounds(retry_s=0.1, resend_after_s=0.3, lost_after_s=2.5)


class Rig:
    """A job whose parts can be started and stopped at will."""

    def __init__(self, room: Path, bounds: Bounds, security: Security) -> None:
        self.room, self.bounds, self.security = room, bounds, security
        self.workers: dict[int, SimulatedWorker] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self.port = 0
        self.server: ManagerServer | None = None
        self.nodes: dict[str, ProxyServer] = {}

    @property
    def manager(self) -> Manager:
        assert self.server is not None
        return self.server.manager

    def socket(self, node: str = "a") -> Path:
        return self.room / node / "live.sock"

    async def start_manager(self, job: str = "", **more: Any) -> Manager:
        manager = Manager(job, bounds=self.bounds, **more)
        self.server = ManagerServer(
            manager, *views_of(manager), port=self.port, security=self.security, bounds=self.bounds
        )
        await self.server.start()
        self.port = self.server.port
        return manager

    async def stop_manager(self) -> None:
        assert self.server is not None
        await self.server.stop()
        self.server = None

    async def start_node(self, node: str = "a", **more: Any) -> Proxy:
        place = PrivateSocket(self.socket(node))
        more.setdefault("security", self.security)
        proxy = Proxy(f"127.0.0.1:{self.port}", place=place, name=node, bounds=self.bounds, **more)
        self.nodes[node] = ProxyServer(proxy, port=0, bounds=self.bounds)
        await self.nodes[node].start()
        return proxy

    async def stop_node(self, node: str = "a") -> None:
        await self.nodes.pop(node).stop()

    def start_worker(self, rank: int, node: str = "a", **more: Any) -> SimulatedWorker:
        more.setdefault("retry_s", 0.05)
        worker = SimulatedWorker(rank, self.socket(node), **more)
        self.workers[rank] = worker
        self._tasks[rank] = asyncio.create_task(worker.run())
        return worker

    def stop_worker(self, rank: int) -> None:
        self._tasks.pop(rank).cancel()

    async def start(self, ranks: int) -> list[SimulatedWorker]:
        """A manager, a node and its workers, which have registered when this returns."""
        await self.start_manager()
        await self.start_node()
        workers = [self.start_worker(rank) for rank in range(ranks)]
        await self.ranks(*range(ranks))
        return workers

    @asynccontextmanager
    async def client(self, security: Security | None = None, job: str = "") -> AsyncIterator[Client]:
        async with connected(f"127.0.0.1:{self.port}", security=security or self.security, job=job) as client:
            yield client

    async def ranks(self, *ranks: int) -> None:
        await until(lambda: set(ranks) <= set(self.manager._registry.alive()))

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        for node in list(self.nodes):
            await self.stop_node(node)
        if self.server is not None:
            await self.stop_manager()


async def until(condition: Callable[[], bool], timeout_s: float = 15.0) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.01)


def run_rig(
    scenario: Callable[[Rig], Any],
    monkeypatch: pytest.MonkeyPatch,
    bounds: Bounds = QUICK,
    security: Security | None = None,
) -> Any:
    """Run a scenario with an empty rig; returns what it returns."""
    with tempfile.TemporaryDirectory(prefix="rig-") as name:  # the paths of pytest are too long for sockets
        room = Path(name)
        monkeypatch.setenv("STEPSCOPE_LIVE_STATE", str(room / "state"))
        monkeypatch.setenv("STEPSCOPE_LIVE_SOCKET", str(room / "run" / "live.sock"))

        async def run() -> Any:
            rig = Rig(room, bounds, security or Security())
            try:
                return await scenario(rig)
            finally:
                await rig.close()

        return asyncio.run(run())
