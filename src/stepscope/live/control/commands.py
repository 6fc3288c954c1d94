"""What is asked of ranks: to profile steps, to measure themselves, to show where they are."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepscope.live.capture.transfer import NotSent
from stepscope.live.control.bounds import Bounds
from stepscope.live.control.fetching import Fetches
from stepscope.live.control.nodes import Node
from stepscope.live.control.registry import RankState, Registry
from stepscope.live.control.requests import Request, Requests
from stepscope.live.control.wire import messages
from stepscope.live.messages import Capture, Check, Dump, Message, line_of

AHEAD_S = 2.0
"""A capture of several ranks begins at a step that none of them reaches sooner."""
SAME_STEP = 100
"""Ranks whose step numbers differ by more count them from different starts."""
STACKS_WITHIN_S = 60.0
FETCHED_WITHIN_S = 120.0


@dataclass
class _Stacks:
    """Stacks that were asked for: of which ranks, and the text and error of those that came."""

    wanted: set[int]
    found: dict[int, tuple[str, str]] = field(default_factory=dict)
    done: asyncio.Event = field(default_factory=asyncio.Event)


class Commands:
    """Sends commands to ranks through their nodes."""

    def __init__(self, bounds: Bounds) -> None:
        self.nodes: dict[str, Node] = {}
        """Those that are connected, by name."""
        self.requests = Requests()
        self.fetches = Fetches()
        self.capture_begun: list[Callable[[str, list[int]], None]] = []
        """Called with the id and the ranks of each capture that begins."""
        self._registry = Registry(bounds)
        self._stacks: dict[str, _Stacks] = {}

    @property
    def ranks(self) -> dict[int, RankState]:
        """All ranks that have registered, by number."""
        return self._registry.ranks

    async def capture(self, ranks: list[int], steps: int, *, shapes: bool = True, stacks: bool = False) -> str:
        """Profile some steps of some ranks, the same steps where they count alike; returns the id of the capture.

        Raises:
            UnknownRank: If one of them takes no part.
        """
        chosen = self._registry.chosen(ranks)
        name = self.requests.new(list(chosen))
        first = self._first_step(chosen)
        self.send(list(chosen), Capture(name, steps, first_step=first, shapes=shapes, stacks=stacks))
        for begun in self.capture_begun:
            begun(name, list(chosen))
        return name

    async def dump(self, ranks: list[int], *, stacks: bool = True, calls: bool = True) -> str:
        """Let workers write down what they are in; returns the id of the request.

        Raises:
            UnknownRank: If one of them takes no part.
        """
        chosen = self._registry.chosen(ranks)
        name = self.requests.new(list(chosen))
        self.send(list(chosen), Dump(name, stacks=stacks, calls=calls))
        return name

    async def check(self, ranks: list[int], kinds: list[str]) -> str:
        """Measure devices and links of some ranks between two steps; returns the id of the check.

        Raises:
            UnknownRank: If one of them takes no part.
        """
        chosen = self._registry.chosen(ranks)
        name = self.requests.new(list(chosen))
        at_step = self._first_step(chosen)
        for rank in chosen:
            peers = [other for other in chosen if other != rank]
            self.send([rank], Check(name, kinds, at_step=at_step, peers=peers))
        return name

    async def results(self, name: str, timeout_s: float) -> Request:
        """Wait for the answers to a capture, dump or check."""
        return await self.requests.answers(name, timeout_s)

    async def fetch(self, rank: int, capture: str, directory: Path, timeout_s: float = FETCHED_WITHIN_S) -> None:
        """Copy the files of a capture from the host of its rank into a directory of this one.

        Raises:
            NotSent: If that is not possible.
        """
        state = self.ranks.get(rank)
        node = self.nodes.get(state.node) if state is not None else None
        if node is None:
            raise NotSent(f"the node of rank {rank} is not connected")
        await self.fetches.fetch(node, rank, capture, directory, timeout_s)

    async def stacks(self, ranks: list[int], timeout_s: float = STACKS_WITHIN_S) -> dict[int, tuple[str, str]]:
        """Python stacks of some ranks, taken from outside by their proxies: text and error of each.

        Raises:
            UnknownRank: If one of them takes no part.
        """
        chosen = self._registry.chosen(ranks)
        name = uuid.uuid4().hex
        by_node = self._by_node(list(chosen))
        asked = self._stacks[name] = _Stacks({rank for there in by_node.values() for rank in there})
        wire = messages()
        try:
            for node, there in by_node.items():
                node.send(wire.ToNode(stacks=wire.TakeStacks(id=name, ranks=there)))
            if asked.wanted:
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(asked.done.wait(), timeout_s)
        finally:
            del self._stacks[name]
        silent = {rank: "its node has not answered" if rank in asked.wanted else "its node is away" for rank in chosen}
        return {rank: asked.found.get(rank, ("", silent[rank])) for rank in chosen}

    def _take_stacks(self, answer: Any) -> None:
        """A node has taken stacks."""
        asked = self._stacks.get(answer.id)
        if asked is not None:
            asked.found.update({one.rank: (one.text, one.error) for one in answer.stacks if one.rank in asked.wanted})
            if asked.wanted <= asked.found.keys():
                asked.done.set()

    def send(self, ranks: list[int], message: Message) -> None:
        """Send a message to workers."""
        wire = messages()
        line = line_of(message).rstrip(b"\n")
        for node, there in self._by_node(ranks).items():
            node.send(wire.ToNode(command=wire.Command(ranks=there, line=line)))

    def _by_node(self, ranks: list[int]) -> dict[Node, list[int]]:
        found: dict[Node, list[int]] = {}
        for rank in ranks:
            node = self.nodes.get(self.ranks[rank].node)
            if node is not None:
                found.setdefault(node, []).append(rank)
        return found

    def _first_step(self, chosen: dict[int, RankState]) -> int:
        """A step that all of them have before them; 0 if there is no such step or only one rank."""
        steps = [
            max(one.pulse.step if one.pulse else 0, one.digest.step if one.digest else 0) for one in chosen.values()
        ]
        if len(steps) < 2 or max(steps) - min(steps) > SAME_STEP:
            return 0
        shortest_ns = min((one.digest.step_ns for one in chosen.values() if one.digest), default=10**9)
        return max(steps) + 2 + math.ceil(AHEAD_S * 1e9 / max(shortest_ns, 1_000_000))
