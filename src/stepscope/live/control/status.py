"""Ranks that come and go, and what a proxy knows of its node."""

from __future__ import annotations

from typing import Literal

import msgspec

from stepscope.live.messages import Hello

Change = Literal["joined", "restarted", "returned", "lost", "left"]


class RankChange(msgspec.Struct, omit_defaults=True, frozen=True):
    """A rank came or went.

    Args:
        change: `joined` for the first time, `restarted` as another process, `returned` after it was lost, `lost` since
            it has not been heard of for some time, or `left` since its process has ended.
        host: Where it runs or ran.
        node: Name of the proxy that it is connected to.
        at_ns: When the manager noticed.
    """

    rank: int
    change: Change
    host: str
    node: str
    at_ns: int


class NodeStatus(msgspec.Struct, omit_defaults=True, frozen=True):
    """What a proxy knows of its node at the moment.

    Args:
        manager: Address of its manager.
        connected: Whether it has a link to it.
        revision: Of the newest state of the switches that it knows.
        workers: Hello of each worker that is connected.
        waiting: Messages that wait for the manager.
        lost: Lines with digests that were dropped so far.
    """

    name: str
    host: str
    job: str
    manager: str
    connected: bool
    revision: int
    switches: list[str] = []
    workers: list[Hello] = []
    waiting: int = 0
    lost: int = 0
