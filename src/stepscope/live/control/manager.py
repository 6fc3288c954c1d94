"""The manager of a job: the state of its switches, its ranks, and what is found out about them.

All of it runs in one event loop. Nothing waits for all ranks: what is asked goes to those that are there, and to others
as soon as they come.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from stepscope.live import places
from stepscope.live.control.board import Board, CannotKeep, Requested
from stepscope.live.control.bounds import BOUNDS, Bounds
from stepscope.live.control.commands import Commands
from stepscope.live.control.link import NotAccepted, wrong_job
from stepscope.live.control.nodes import Node
from stepscope.live.control.registry import RankState
from stepscope.live.control.status import RankChange
from stepscope.live.control.watching import Detector, Watching
from stepscope.live.control.wire import messages
from stepscope.live.messages import (
    Applied,
    Apply,
    BadMessage,
    Captured,
    Checked,
    Digest,
    Digests,
    FromWorker,
    Hello,
    Pulse,
    from_worker,
)
from stepscope.live.verdicts import Verdict

log = logging.getLogger("stepscope")

Event = Digest | Pulse | Verdict | Requested | RankChange | Applied | Captured | Checked
Callback = Callable[[Any], None]

LOOK_EVERY_S = 0.5
"""How often ranks are looked over: lost ones, and those that have not applied the switches."""
MOST_OVER = 100
"""The last verdicts that are over and kept."""


class Manager(Commands):
    """Serves one job.

    Args:
        job: Task id; empty for that of the first worker that registers.
        persistent: Whether the state of the switches is kept on disk, in `places.state_directory`.
        forgets: Whether to begin anew instead of going on from the state that an earlier manager has kept.
        detector: Finds slow ranks; None if nobody asks.
    """

    def __init__(
        self,
        job: str = "",
        *,
        persistent: bool = True,
        forgets: bool = False,
        detector: Detector | None = None,
        bounds: Bounds = BOUNDS,
    ) -> None:
        super().__init__(bounds)
        self.job = ""
        self.board = Board()
        self.board.changed = self._switched
        self.verdicts: dict[str, Verdict] = {}
        self.counts: Counter[str] = Counter()
        """What has happened so far: lines, bad lines, digests, lost digests, sent again, refused."""
        self.amend: Callable[[Verdict], Verdict] | None = None
        """Adds what is known of the cause to each verdict."""
        self.job_known = asyncio.Event()
        self.started_at_ns = time.time_ns()
        self._watching = Watching(detector, self._found) if detector is not None else None
        self._bounds, self._persistent, self._forgets = bounds, persistent, forgets
        self._callbacks: list[Callback] = []
        self._sent_s: dict[int, float] = {}
        self._set_aside: dict[str, Verdict] = {}
        """Verdicts that would last if the ranks had not gone; they do again if the ranks come back."""
        self._tasks: list[asyncio.Task[None]] = []
        self._stated_job = job

    async def start(self) -> None:
        """Begin to look after the ranks."""
        if self._stated_job:
            await self.take_job(self._stated_job)
        self._tasks.append(asyncio.create_task(self._look_after()))
        if self._watching is not None:
            self._tasks.append(asyncio.create_task(self._watching.run()))

    async def stop(self) -> None:
        """Stop; the links to nodes end."""
        nodes = list(self.nodes.values())
        self.nodes.clear()
        for node in nodes:
            node.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # What others see of it.

    @property
    def lag_ns(self) -> int | None:
        """How long the detector took for its last look; None without a detector."""
        return None if self._watching is None else self._watching.lag_ns

    @property
    def wants_communication(self) -> bool:
        """Whether the detector lacks evidence that the communication switch would give."""
        return self._watching is not None and self._watching.wants_communication

    def listen(self, callback: Callback) -> None:
        """Call a function with everything that happens from now on, in the event loop. It must not block."""
        self._callbacks.append(callback)

    def unlisten(self, callback: Callback) -> None:
        """Call it no more."""
        if callback in self._callbacks:
            self._callbacks.remove(callback)

    async def take_job(self, job: str) -> None:
        """Serve this job from now on; its switches go on from where they were.

        Raises:
            CannotKeep: If the state cannot be written.
        """
        if self._persistent:
            file = places.state_directory() / places.safe_name(job) / "switches.json"
            if self._forgets:
                file.unlink(missing_ok=True)
            await self.board.keep_in(file)
        self.job = job
        kept = self.board.requested
        since = f"; its switches are as {kept.by} requested (revision {kept.revision})" if kept.revision else ""
        log.info("this manager serves job %s%s", job, since)
        for node in self.nodes.values():
            await self._learn(node)
        self.job_known.set()
        self._send_state()

    # What nodes say.

    async def registered(self, node: Node, hello: Any) -> None:
        """A proxy has connected.

        Raises:
            NotAccepted: If it serves another job, or there are too many nodes.
        """
        if self.job and hello.job and hello.job != self.job:
            raise NotAccepted(f"this manager serves job {self.job}, not {hello.job}")
        before = self.nodes.get(node.name)
        if before is not None:
            before.close()
        elif len(self.nodes) >= self._bounds.most_nodes:
            raise NotAccepted(f"this manager has {len(self.nodes):,} nodes already")
        self.nodes[node.name] = node
        log.info("node %s has connected", node.name)
        node.state = hello.state_job, hello.revision, list(hello.switches)
        await self._learn(node)
        node.send(self._state())

    async def _learn(self, node: Node) -> None:
        """A node may know a newer state of this job."""
        job, revision, switches = node.state
        if job and job == self.job:
            await self.board.learn(revision, switches, f"node {node.name}")

    def disconnected(self, node: Node) -> None:
        """A proxy has gone. Its ranks are lost unless they are heard of through another one in time."""
        if self.nodes.get(node.name) is node:
            del self.nodes[node.name]
            log.warning("node %s has gone", node.name)

    async def receive(self, node: Node, message: Any) -> None:
        """A proxy has sent something."""
        if self.nodes.get(node.name) is not node:
            return
        kind = message.WhichOneof("body")
        if kind == "lines":
            lines = message.lines.lines
            self.counts["lost_digests"] += message.lines.lost
            for one in lines:
                await self._line(node, one.rank, one.line)
            await node.allowance.wait(len(lines), sum(len(one.line) for one in lines))
        elif kind == "left":
            self._tell_change(self._registry.left(message.left.rank, message.left.started_at_ns))
        elif kind == "stacks":
            self._take_stacks(message.stacks)
        elif kind == "part":
            self.fetches.take(message.part)

    async def _line(self, node: Node, rank: int, line: bytes) -> None:
        self.counts["lines"] += 1
        try:
            message = from_worker(line)
        except BadMessage as error:
            self.counts["bad_lines"] += 1
            log.warning("node %s: %s", node.name, error)
            return
        if isinstance(message, Hello):
            await self._hello(node, message)
            return
        state, change = self._registry.heard(rank, node.name)
        if state is not None:
            if change is not None:
                await self._takes_part(state)
                self._tell_change(change)
            await self._said(state, message)

    async def _hello(self, node: Node, hello: Hello) -> None:
        try:
            if not self.job:
                await self.take_job(hello.job)
            if hello.job != self.job:
                raise wrong_job(hello, self.job)
            change = self._registry.hello(node.name, hello)
        except (NotAccepted, CannotKeep) as error:
            self.counts["refused"] += 1
            wire = messages()
            refusal = wire.Refuse(rank=hello.rank, started_at_ns=hello.started_at_ns, reason=str(error))
            node.send(wire.ToNode(refuse=refusal))
            return
        if change is not None and change.change == "restarted":
            self.board.left(hello.rank)
            self.requests.gone(hello.rank, "its process was restarted")
        await self.board.learn(hello.revision, hello.switches, f"rank {hello.rank}")
        await self._takes_part(self.ranks[hello.rank])
        self._tell_change(change)

    async def _takes_part(self, state: RankState) -> None:
        hello = state.hello
        await self.board.acknowledge(hello.rank, hello.revision, hello.switches)
        self._sent_s.pop(hello.rank, None)
        if self._watching is not None:
            self._watching.hello(hello)

    async def _said(self, state: RankState, message: FromWorker) -> None:
        if isinstance(message, Digests):
            self.counts["lost_digests"] += message.lost
            for digest in message.digests:
                # sent twice by a proxy whose link broke
                if state.digest is None or digest.step > state.digest.step:
                    state.digest = digest
                    self.counts["digests"] += 1
                    if self._watching is not None:
                        self._watching.digest(digest)
                    self._tell(digest)
        elif isinstance(message, Pulse):
            state.pulse = message
            await self._confirm(message)
            if self._watching is not None:
                self._watching.pulse(message, time.time_ns())
            self._tell(message)
        elif isinstance(message, Applied):
            await self.board.acknowledge(message.rank, message.revision, message.switches, message.error)
            self._tell(message)
        elif isinstance(message, (Captured, Checked)):
            self.requests.take(message.capture if isinstance(message, Captured) else message.check, message)
            self._tell(message)

    async def _confirm(self, pulse: Pulse) -> None:
        """A pulse also tells what is applied, in case the answer to the switch was lost with a proxy."""
        requested, said = self.board.requested, self.board.acknowledged.get(pulse.rank)
        if pulse.revision == requested.revision and (said is None or said.revision < pulse.revision):
            await self.board.acknowledge(pulse.rank, pulse.revision, requested.switches.as_names())

    # The state of the switches.

    def _switched(self, requested: Requested) -> None:
        self._sent_s.clear()
        self._send_state()
        self._tell(requested)

    def _state(self) -> Any:
        wire, requested = messages(), self.board.requested
        names = requested.switches.as_names()
        return wire.ToNode(state=wire.State(job=self.job, revision=requested.revision, switches=names))

    def _send_state(self) -> None:
        state = self._state()
        for node in self.nodes.values():
            node.send(state)

    def _send_again(self, now_s: float) -> None:
        """To ranks that have not applied the state for some time."""
        late = []
        for rank in self.board.pending():
            said = self.board.acknowledged[rank]
            wait_s = self._bounds.resend_error_after_s if said.error else self._bounds.resend_after_s
            if now_s - self._sent_s.setdefault(rank, now_s) >= wait_s:
                self._sent_s[rank] = now_s
                late.append(rank)
        if late:
            self.counts["sent_again"] += len(late)
            requested = self.board.requested
            self.send(late, Apply(requested.revision, requested.switches.as_names()))

    async def _look_after(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                for change in self._registry.silent():
                    self._tell_change(change)
                self._send_again(time.monotonic())
            except Exception:
                log.exception("looking after the ranks failed")

    # Those who listen.

    def _tell_change(self, change: RankChange | None) -> None:
        if change is None:
            return
        log.info("rank %d on %s %s", change.rank, change.host, change.change)
        if change.change in ("lost", "left"):
            self.board.left(change.rank)
            self.requests.gone(change.rank, "the rank was lost" if change.change == "lost" else "it has left")
            if self._watching is not None:
                self._watching.left(change.rank, change.at_ns)
        self._tell(change)
        if not self._registry.alive():
            for verdict in [one for one in self.verdicts.values() if not one.is_over]:
                self._found(verdict)
        elif change.change == "returned":
            for verdict in self._set_aside.values():
                self._tell_verdict(verdict)
            self._set_aside.clear()
        elif change.change in ("joined", "restarted"):
            self._set_aside.clear()

    def _found(self, verdict: Verdict) -> None:
        """A verdict is new, has changed, or is over. It cannot last when no rank takes part any more."""
        known = self.verdicts.get(verdict.key)
        if verdict.is_over:
            self._set_aside.pop(verdict.key, None)
            if known is not None and known.is_over:
                return  # since the ranks have gone
        elif self.ranks and not self._registry.alive():
            self._set_aside[verdict.key] = verdict
            if known is not None and known.is_over:
                return
            last = max((one.digest.step for one in self.ranks.values() if one.digest is not None), default=0)
            until_step = max(last, verdict.since_step)
            verdict = msgspec.structs.replace(verdict, until_step=until_step, until_at_ns=time.time_ns())
        self._tell_verdict(verdict)

    def _tell_verdict(self, verdict: Verdict) -> None:
        if self.amend is not None:
            verdict = self.amend(verdict)
        self.verdicts[verdict.key] = verdict
        over = [key for key, one in self.verdicts.items() if one.is_over]
        for key in over[:-MOST_OVER]:
            del self.verdicts[key]
        self._tell(verdict)

    def explain(self, verdict: Verdict) -> None:
        """More is known of a verdict, e.g. from a capture. One that is over meanwhile stays so."""
        known = self.verdicts.get(verdict.key)
        if known is not None and known.is_over and not verdict.is_over:
            verdict = msgspec.structs.replace(
                known, ranks=verdict.ranks, evidence=verdict.evidence, explanation=verdict.explanation
            )
        self._tell_verdict(verdict)

    def _tell(self, event: Event) -> None:
        for callback in list(self._callbacks):
            try:
                callback(event)
            except Exception:
                log.exception("a listener failed")
