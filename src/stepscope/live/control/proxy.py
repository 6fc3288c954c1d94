"""The proxy of a node: between its workers and the manager of the job, either of which may die and come back."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import psutil

from stepscope.live import places
from stepscope.live.control.bounds import BOUNDS, Bounds
from stepscope.live.control.fetching import send_capture
from stepscope.live.control.link import Connection, LinkServer, NotAccepted, refuse, wrong_job
from stepscope.live.control.outbox import Outbox
from stepscope.live.control.rates import Once
from stepscope.live.control.security import Security
from stepscope.live.control.sockets import PrivateSocket
from stepscope.live.control.status import NodeStatus
from stepscope.live.control.uplink import Uplink
from stepscope.live.control.wire import messages
from stepscope.live.messages import (
    Applied,
    Apply,
    Digests,
    FromWorker,
    Hello,
    Pulse,
    line_of,
)

log = logging.getLogger("stepscope")

StackTaker = Callable[[int], Awaitable[str]]
"""Takes the Python stacks of a process by its number; raises StepscopeError with the reason if that is not possible."""

_LOOKS_EVERY_S = 0.2
"""How often a process whose link has ended is looked for. Frameworks take seconds to end on a busy host."""


class Worker:
    """A registered worker."""

    def __init__(self, connection: Connection, hello: Hello) -> None:
        self.connection, self.hello = connection, hello

    @property
    def pid(self) -> int:
        """Its process as this node counts; 0 if it cannot be seen from here, or only the peer itself says which it is:
        any user of this node may use the port, and must not have the stacks of processes of this one shown."""
        if not self.connection.is_local:
            return 0
        peer = self.connection.peer
        return self.hello.pid if peer is None else peer.pid

    def is_same_process(self, hello: Hello) -> bool:
        """Whether it is the process that says hello (again)."""
        return (self.hello.pid, self.hello.started_at_ns) == (hello.pid, hello.started_at_ns)


class Proxy:
    """Serves the workers of one node.

    Args:
        manager: Where the manager is: `HOST:PORT` or `unix:PATH`.
        job: Serve only this job; empty for that of the manager.
        place: Where workers connect.
        name: Identifies the node in the job.
        security: How the manager knows that this is a friend.
        take_stacks: Takes the stacks of a process; None if this node cannot.
    """

    def __init__(
        self,
        manager: str,
        *,
        job: str = "",
        place: PrivateSocket | None = None,
        name: str = "",
        security: Security | None = None,
        take_stacks: StackTaker | None = None,
        bounds: Bounds = BOUNDS,
    ) -> None:
        self.host = socket.gethostname()
        self.name = name or f"{self.host}:{places.PROXY_PORT}"
        self.job = job
        self.known = Apply(0, [])
        """The newest state of the switches that anybody has told."""
        self.workers: dict[int, Worker] = {}
        self._own_job = job
        self._instance = uuid.uuid4().hex
        self._take_stacks = take_stacks
        self._lost_after_s = bounds.lost_after_s
        self._said = Once()
        self._outbox = Outbox(bounds)
        self._links = LinkServer(place or PrivateSocket(places.socket_path()), self, bounds)
        self._uplink = Uplink(manager, security or Security(), bounds, self._outbox, self._hello, self._receive)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Begin to serve.

        Raises:
            StepscopeError: If another process serves the node, or the socket cannot be made.
        """
        await self._links.start()
        self._begin(self._uplink.run())

    async def stop(self) -> None:
        """End all links. Training goes on; workers try to connect again."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._links.stop()

    def status(self) -> NodeStatus:
        """What is known at the moment."""
        return NodeStatus(
            name=self.name,
            host=self.host,
            job=self.job,
            manager=self._uplink.target,
            connected=self._uplink.connected,
            revision=self.known.revision,
            switches=self.known.switches,
            workers=[self.workers[rank].hello for rank in sorted(self.workers)],
            waiting=len(self._outbox),
            lost=self._outbox.lost,
        )

    # The workers of this node (`link.Hub`).

    def joined(self, connection: Connection, hello: Hello) -> None:
        """A worker registers, or has changed.

        Raises:
            NotAccepted: If it belongs to another job, or a newer process has its rank.
        """
        if self.job and hello.job != self.job:
            raise wrong_job(hello, self.job)
        self._make_room(connection, hello)
        before = connection.hello
        if not self.job:
            self.job = hello.job  # until the manager says otherwise
        if before is not None and before.rank != hello.rank:
            self._remove(before.rank, connection)
            self._outbox.left(before.rank, before.started_at_ns)
        self.workers[hello.rank] = Worker(connection, hello)
        self._outbox.hello(hello.rank, line_of(hello))
        self._learn(hello.revision, hello.switches)
        if self.known.revision > hello.revision:
            connection.send(line_of(self.known))

    def said(self, connection: Connection, message: FromWorker, line: bytes) -> None:
        """A registered worker has sent something else."""
        rank = connection.hello.rank if connection.hello is not None else -1
        worker = self.workers.get(rank)
        if worker is None or worker.connection is not connection:
            return  # what a replaced process still says
        if isinstance(message, Digests):
            self._outbox.digests(rank, line)
        elif isinstance(message, Pulse):
            self._outbox.pulse(rank, line)
        elif isinstance(message, Applied):
            if not message.error and message.revision >= worker.hello.revision:
                worker.hello = msgspec.structs.replace(
                    worker.hello, revision=message.revision, switches=message.switches
                )
            self._outbox.applied(rank, line)
        else:
            self._outbox.result(rank, line)

    def gone(self, connection: Connection) -> None:
        """The link of a registered worker has ended."""
        hello = connection.hello
        if hello is None:
            return
        worker = self.workers.get(hello.rank)
        if worker is not None and worker.connection is connection:
            self._remove(hello.rank, connection)
            if connection.is_local and worker.pid:
                self._begin(self._watch_end(worker.pid, hello))

    def _make_room(self, connection: Connection, hello: Hello) -> None:
        other = self.workers.get(hello.rank)
        if other is None or other.connection is connection:
            return
        if other.connection.is_local and not connection.is_local:
            raise NotAccepted(f"rank {hello.rank} is connected through the Unix socket of this node")
        if not other.is_same_process(hello):
            if other.hello.started_at_ns > hello.started_at_ns:
                raise NotAccepted(f"a newer process ({other.hello.pid}) is rank {hello.rank}")
            log.info("rank %d was restarted: process %d replaces %d", hello.rank, hello.pid, other.hello.pid)
        self._remove(hello.rank, other.connection)
        refuse(other.connection, f"another process ({hello.pid}) is rank {hello.rank} now")

    def _remove(self, rank: int, connection: Connection) -> None:
        worker = self.workers.get(rank)
        if worker is not None and worker.connection is connection:
            del self.workers[rank]
            self._outbox.forget(rank)

    async def _watch_end(self, pid: int, hello: Hello) -> None:
        """Report the end of a process at once, as long as pulses that are missing do not tell of it."""
        until = time.monotonic() + self._lost_after_s
        while runs(pid):
            if time.monotonic() > until:
                return
            await asyncio.sleep(_LOOKS_EVERY_S)
        worker = self.workers.get(hello.rank)
        if worker is None or not worker.is_same_process(hello):
            self._outbox.left(hello.rank, hello.started_at_ns)

    # The state of the switches.

    def _learn(self, revision: int, switches: list[str]) -> None:
        if revision <= self.known.revision:
            return
        self.known = Apply(revision, switches)
        line = line_of(self.known)
        for worker in self.workers.values():
            if worker.hello.revision < revision:
                worker.connection.send(line)

    # The manager (`uplink.Uplink`).

    def _hello(self) -> Any:
        for rank, worker in self.workers.items():
            self._outbox.hello(rank, line_of(worker.hello))
        return messages().FromNode(
            hello=messages().NodeHello(
                name=self.name,
                host=self.host,
                instance=self._instance,
                job=self._own_job,
                revision=self.known.revision,
                switches=self.known.switches,
                state_job=self.job,
            )
        )

    def _receive(self, message: Any) -> None:
        kind = message.WhichOneof("body")
        if kind == "state":
            if self._follow(message.state.job):
                self._learn(message.state.revision, list(message.state.switches))
        elif kind == "command":
            for rank in message.command.ranks or list(self.workers):
                if rank in self.workers:
                    self.workers[rank].connection.send(message.command.line + b"\n")
        elif kind == "refuse":
            self._refuse(message.refuse.rank, message.refuse.started_at_ns, message.refuse.reason)
        elif kind == "stacks":
            self._begin(self._stacks(message.stacks.id, list(message.stacks.ranks)))
        elif kind == "fetch":
            worker = self.workers.get(message.fetch.rank)
            directory = worker.hello.directory if worker is not None and worker.connection.is_local else ""
            self._begin(send_capture(message.fetch, directory, self._outbox))

    def _follow(self, job: str) -> bool:
        """Serve the job of the manager; returns whether that is possible."""
        if not job or job == self.job:
            return True
        if self._own_job:
            log.error(
                "the manager serves job %s, this proxy job %s. Start one of them for the other's job", job, self.job
            )
            return False
        if self.job:
            self.known = Apply(0, [])  # it was that of another job
        self.job = job
        for rank, worker in list(self.workers.items()):
            if worker.hello.job != job:
                self._refuse(rank, worker.hello.started_at_ns, str(wrong_job(worker.hello, job)))
        return True

    def _refuse(self, rank: int, started_at_ns: int, reason: str) -> None:
        worker = self.workers.get(rank)
        if worker is not None and worker.hello.started_at_ns == started_at_ns:
            if self._said.is_news(reason):
                log.warning("rank %d (process %d) is refused: %s", rank, worker.hello.pid, reason)
            self._remove(rank, worker.connection)
            refuse(worker.connection, reason)

    async def _stacks(self, request: str, ranks: list[int]) -> None:
        wire = messages()
        answer = wire.NodeStacks(id=request)
        for rank in ranks:
            worker = self.workers.get(rank)
            one = answer.stacks.add(rank=rank)
            if self._take_stacks is None:
                one.error = "this node takes no stacks"
            elif worker is None or not worker.pid:
                one.error = "its process cannot be seen from the proxy of its node"
            else:
                try:
                    one.text = await self._take_stacks(worker.pid)
                except Exception as error:
                    one.error = str(error)
        self._outbox.answer(wire.FromNode(stacks=answer))

    def _begin(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def runs(pid: int) -> bool:
    """Whether a process of this node runs still."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True
