"""Copying captures from the hosts of ranks to the manager's, over the links that are there."""

from __future__ import annotations

import asyncio
import logging
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepscope.live.capture.transfer import Arriving, NotSent, pieces_of
from stepscope.live.control.nodes import Node
from stepscope.live.control.outbox import Outbox
from stepscope.live.control.wire import messages

log = logging.getLogger("stepscope")

_MOST_WAITING = 4
"""Pieces in the outbox of a proxy; more are read when these are sent, so that steps and pulses hardly wait."""
_LOOK_S = 0.02
MOST_AT_ONCE = 8
"""Captures that a manager fetches at a time."""


async def send_capture(request: Any, rank_directory: str, outbox: Outbox) -> None:
    """In a proxy: send a capture of a rank of this node."""
    wire = messages()
    try:
        for name, piece in pieces_of(rank_directory, request.capture):
            while outbox.waiting_answers >= _MOST_WAITING:
                await asyncio.sleep(_LOOK_S)
            part = wire.CapturePart(id=request.id, rank=request.rank, name=name, data=piece)
            outbox.answer(wire.FromNode(part=part))
        end = wire.CapturePart(id=request.id, rank=request.rank, over=True)
    except NotSent as error:
        end = wire.CapturePart(id=request.id, rank=request.rank, over=True, error=str(error))
    outbox.answer(wire.FromNode(part=end))


@dataclass
class _Fetch:
    arriving: Arriving
    done: asyncio.Event = field(default_factory=asyncio.Event)
    error: str = ""


class Fetches:
    """In a manager: captures that are on their way."""

    def __init__(self) -> None:
        self._open: dict[str, _Fetch] = {}

    async def fetch(self, node: Node, rank: int, capture: str, directory: Path, timeout_s: float) -> None:
        """Ask a node for a capture, and wait until it is in `directory`.

        Raises:
            NotSent: If it does not come.
        """
        if len(self._open) >= MOST_AT_ONCE:
            raise NotSent("too many captures are on their way already")
        name = uuid.uuid4().hex
        one = self._open[name] = _Fetch(Arriving(directory))
        wire = messages()
        try:
            node.send(wire.ToNode(fetch=wire.FetchCapture(id=name, rank=rank, capture=capture)))
            await asyncio.wait_for(one.done.wait(), timeout_s)
            if one.error:
                raise NotSent(one.error)
            one.arriving.complete()
        except BaseException as error:
            one.arriving.drop()
            if isinstance(error, asyncio.TimeoutError):
                raise NotSent(f"node {node.name} has not sent it within {timeout_s:g} s") from error
            raise
        finally:
            del self._open[name]

    def take(self, part: Any) -> None:
        """A piece has come; pieces that nobody waits for are dropped."""
        one = self._open.get(part.id)
        if one is None or one.done.is_set():
            return
        try:
            if part.over:
                one.error = part.error
                one.done.set()
            else:
                one.arriving.take(part.name, part.data)
        except NotSent as error:
            log.warning("a capture that arrives is refused: %s", error)
            one.error = str(error)
            one.done.set()
