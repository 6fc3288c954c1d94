"""Sizes, rates and times of manager and proxies."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.limits import limit
from stepscope.live.messages import MOST_LINE_BYTES


@dataclass(frozen=True)
class Bounds:
    """What manager and proxies accept, and how long they wait."""

    lost_after_s: float = limit(10.0, "s", "ten pulses that are missing")
    resend_after_s: float = limit(2.0, "s", "twice the time in which a worker connects again")
    resend_error_after_s: float = limit(30.0, "s", "chosen by us: what failed seldom works at once; TaskD's interval")
    retry_s: float = limit(1.0, "s", "longest wait between two attempts to reach the manager; TaskD's interval")
    hello_within_s: float = limit(10.0, "s", "a worker says hello at once; a stranger holds a place no longer")
    most_workers: int = limit(256, "connections", "a node has 16 devices at most today; spare rooms for restarts")
    most_nodes: int = limit(10_000, "nodes", "chosen by us: above the largest jobs known")
    most_events: int = limit(10_000, "events", "that wait for a subscriber; a few seconds at 1,024 ranks")
    most_subscribers: int = limit(64, "subscribers", "chosen by us")
    lines_a_second: float = limit(500.0, "lines/s", "a worker sends some three a second; of one worker")
    bytes_a_second: float = limit(8e6, "B/s", "a step takes some 500 B; 16,000 steps a second of one worker")
    burst: float = limit(4.0, "s", "times the rate that may come at once, e.g. after a pause")
    waiting_bytes: int = limit(64 * 1024 * 1024, "B", "digests in a proxy while the manager is away: 10 min of 8 ranks")
    message_bytes: int = limit(MOST_LINE_BYTES + 1024 * 1024, "B", "a gRPC message: the longest line, and its frame")
    streams: int = limit(256, "streams", "concurrent calls on one connection")
    calls_a_second: float = limit(200.0, "calls/s", "of one address; a proxy makes one call each second at most")
    wait_s: float = limit(600.0, "s", "longest time that a client may make the manager wait")


BOUNDS = Bounds()
