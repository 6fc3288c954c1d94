"""Workers without training: clients of a proxy that register, pulse, send digests and follow the switches as real ones
do, many in one process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepscope.live.messages import (
    MOST_LINE_BYTES,
    Applied,
    Apply,
    BadMessage,
    Digest,
    Digests,
    Hello,
    Message,
    Pulse,
    Refused,
    ToWorker,
    line_of,
    to_worker,
)
from stepscope.live.switches import DEFAULT

RETRY_S = 1.0
"""As the real worker."""


@dataclass
class SimulatedWorker:
    """One rank.

    Args:
        socket: Where its proxy listens.
        steps_a_second: How fast it pretends to train; 0 sends pulses only.
    """

    rank: int
    socket: Path
    job: str = "job"
    host: str = "host"
    world_size: int = 1
    steps_a_second: float = 2.0
    retry_s: float = RETRY_S
    pid: int = field(default_factory=os.getpid)
    started_at_ns: int = field(default_factory=time.time_ns)

    ignores: int = 0
    """How many requests to switch it misses."""
    error: str = ""
    """Why it cannot switch."""
    answers: dict[type[ToWorker], Callable[[Any], Message]] = field(default_factory=dict)
    """What it answers to other requests."""
    revision: int = 0
    switches: list[str] = field(default_factory=DEFAULT.as_names)
    applied_at_ns: dict[int, int] = field(default_factory=dict)
    """When it began to follow each state, by revision."""
    refused: list[str] = field(default_factory=list)
    received: list[ToWorker] = field(default_factory=list)
    connections: int = 0
    step: int = 0
    directory: str = ""
    """Where it says that its records are."""

    def hello(self) -> Hello:
        """Its registration at the moment."""
        return Hello(
            self.job,
            self.rank,
            self.pid,
            self.host,
            self.started_at_ns,
            world_size=self.world_size,
            framework="torch",
            device="cpu",
            revision=self.revision,
            switches=self.switches,
            directory=self.directory,
        )

    async def run(self) -> None:
        """Take part until this is cancelled."""
        while True:
            with suppress(OSError):
                await self._link()
            await asyncio.sleep(self.retry_s)

    async def _link(self) -> None:
        reader, writer = await asyncio.open_unix_connection(str(self.socket), limit=MOST_LINE_BYTES)
        self.connections += 1
        pulsing = asyncio.create_task(self._pulse(writer))
        try:
            self._send(writer, self.hello())
            while line := await reader.readline():
                with suppress(BadMessage):
                    self._take(to_worker(line), writer)
        finally:
            pulsing.cancel()
            writer.close()

    def _take(self, message: ToWorker, writer: asyncio.StreamWriter) -> None:
        self.received.append(message)
        if isinstance(message, Apply) and self.ignores:
            self.ignores -= 1
        elif isinstance(message, Apply) and self.error:
            self._send(writer, Applied(self.rank, self.revision, self.switches, time.time_ns(), self.error))
        elif isinstance(message, Apply):
            if message.revision > self.revision:
                self.revision, self.switches = message.revision, message.switches
                self.applied_at_ns[message.revision] = time.time_ns()
            at_ns = self.applied_at_ns.get(self.revision, self.started_at_ns)
            self._send(writer, Applied(self.rank, self.revision, self.switches, at_ns))
        elif type(message) in self.answers:
            self._send(writer, self.answers[type(message)](message))
        elif isinstance(message, Refused):
            self.refused.append(message.reason)

    async def _pulse(self, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(self.rank % 97 / 97)  # not all at once
        ended = 0.0
        while True:
            ended += self.steps_a_second
            digests = []
            while ended >= 1:
                ended -= 1
                self.step += 1
                digests.append(self.digest())
            if digests:
                self._send(writer, Digests(digests))
            self._send(writer, Pulse(self.rank, self.step, 0, revision=self.revision))
            await asyncio.sleep(1)

    def digest(self) -> Digest:
        """What it says of the step that it has ended."""
        return Digest(self.rank, self.step, time.time_ns(), int(1e9 / self.steps_a_second))

    @staticmethod
    def _send(writer: asyncio.StreamWriter, message: Message) -> None:
        if not writer.is_closing():
            writer.write(line_of(message))


async def nodes(room: Path, port: int, first: int, count: int, each: int) -> None:
    """Proxies with their workers, until SIGTERM; then leaves when each worker has followed which revision."""
    from stepscope.live.control.proxy import Proxy  # noqa: PLC0415 - workers alone need no gRPC
    from stepscope.live.control.sockets import PrivateSocket  # noqa: PLC0415

    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    proxies, workers, tasks = [], [], []
    for node in range(first, first + count):
        place = PrivateSocket(room / f"node-{node}" / "live.sock")
        proxies.append(Proxy(f"127.0.0.1:{port}", place=place, name=f"node-{node}"))
        await proxies[-1].start()
        for rank in range(node * each, (node + 1) * each):
            workers.append(SimulatedWorker(rank, place.path, host=f"host-{node}"))
            tasks.append(asyncio.create_task(workers[-1].run()))
    await told.wait()
    applied = {worker.rank: worker.applied_at_ns for worker in workers}
    (room / f"applied-{first}.json").write_text(json.dumps(applied))
    for task in tasks:
        task.cancel()
    for proxy in proxies:
        await proxy.stop()


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        asyncio.run(SimulatedWorker(int(sys.argv[3]), Path(sys.argv[2])).run())
    else:
        asyncio.run(nodes(Path(sys.argv[1]), *(int(word) for word in sys.argv[2:6])))
