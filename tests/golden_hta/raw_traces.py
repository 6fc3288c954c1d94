"""Figures from traces of PyTorch without any function of ours: times in whole microseconds, as HTA rounds them."""

from __future__ import annotations

import gzip
import json
import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")


@dataclass(frozen=True)
class Event:
    """A range of a trace; start and end in whole us, as HTA rounds them."""

    name: str
    category: str
    start: int
    end: int
    args: dict[str, Any]
    exact_us: Decimal
    thread: str

    @property
    def duration(self) -> int:
        return max(self.end - self.start, 0)

    @property
    def stream(self) -> int:
        return int(self.args["stream"])


@dataclass
class RawRank:
    """A trace without what is launched in the last of several steps."""

    rank: int
    work: list[Event] = field(default_factory=list)
    calls: dict[int, Event] = field(default_factory=dict)
    host: list[Event] = field(default_factory=list)

    def call_of(self, work: Event) -> Event | None:
        """The call that launched a piece of work."""
        return self.calls.get(int(work.args.get("correlation", -1)))

    def launched(self) -> list[tuple[Event, Event]]:
        """Device work with the call that launched it."""
        return [(one, call) for one in self.work if (call := self.call_of(one)) is not None]


def read_raw(path: Path) -> list[RawRank]:
    """The ranks of a trace or a folder of traces."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return [_read(file, number) for number, file in enumerate(files)]


def _read(file: Path, number: int) -> RawRank:
    content = file.read_bytes()
    text = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    trace = json.loads(text, parse_float=Decimal)
    rank = RawRank(int((trace.get("distributedInfo") or {}).get("rank", number)))
    events = [_event(one) for one in trace["traceEvents"] if one.get("ph") == "X" and "dur" in one]
    steps = [one.start for one in events if one.name.startswith("ProfilerStep#") and one.category == "user_annotation"]
    last = max(steps) if len(steps) > 1 else None
    for one in events:
        if one.category in CALLS and "correlation" in one.args:
            rank.calls.setdefault(int(one.args["correlation"]), one)
        elif one.category in DEVICE:
            rank.work.append(one)
        else:
            rank.host.append(one)
    if last is not None:
        rank.work = [one for one in rank.work if (call := rank.call_of(one)) is None or call.start < last]
    return rank


def _event(one: dict[str, Any]) -> Event:
    start, duration = Decimal(one["ts"]), Decimal(one["dur"])
    bounds = math.ceil(start), math.floor(start + duration)
    return Event(one["name"], one.get("cat", ""), *bounds, one.get("args") or {}, duration, str(one.get("tid")))


def union(ranges: Iterable[tuple[int, int]]) -> int:
    """How long any of some ranges lasts."""
    total, reached = 0, None
    for start, end in sorted(ranges):
        if reached is None or start > reached:
            total += max(end - start, 0)
            reached = max(start, end)
        elif end > reached:
            total += end - reached
            reached = end
    return total


def queue_lengths(rank: RawRank, stream: int, *, up_first: bool) -> list[int]:
    """The length of a stream's queue after each launch and start, in order; of those in the same microsecond, either
    all launches come first or all starts."""
    changes = []
    for work, call in rank.launched():
        if work.stream == stream:
            changes += [(call.start, 1), (work.start, -1)]
    lengths, length = [], 0
    for _, change in sorted(changes, key=lambda one: (one[0], -one[1] if up_first else one[1])):
        length += change
        lengths.append(length)
    return lengths


def idle_gaps(rank: RawRank, stream: int, *, skip_overlaps: bool, blame_host: bool = False) -> dict[str, list[int]]:
    """Gaps of a stream by cause, in us.

    Args:
        rank: The trace.
        stream: The stream.
        skip_overlaps: Leave out what begins before the piece before it has ended, which is no gap; otherwise it is one
            below 0.
        blame_host: Call gaps before work without a recorded launch the host's.
    """
    gaps: dict[str, list[int]] = {"host_wait": [], "kernel_wait": [], "other": []}
    reached = None
    for work in sorted((one for one in rank.work if one.stream == stream), key=lambda one: (one.start, one.end)):
        gap = 0 if reached is None else work.start - reached
        if reached is not None and (gap > 0 or not skip_overlaps):
            call = rank.call_of(work)
            is_late = blame_host if call is None else call.start > reached
            cause = "host_wait" if is_late else "kernel_wait" if gap < 30 else "other"
            gaps[cause].append(gap)
        end = work.start + work.duration
        reached = max(reached or end, end) if skip_overlaps else end
    return gaps


def launching_operators(
    rank: RawRank, *, innermost: bool
) -> dict[tuple[str, tuple[str, ...]], list[tuple[float, float]]]:
    """What operators of ATen launch themselves, without copies and fills.

    Args:
        rank: The trace.
        innermost: Of operators around a call that begin together take the innermost, else the outermost.

    Returns:
        By operator and kernels, of each call how long it takes from its start to its first launch, and from there to
        the start of the kernel.
    """
    by_thread: dict[str, list[Event]] = {}
    for one in rank.host:
        if one.category == "cpu_op":
            by_thread.setdefault(one.thread, []).append(one)
    for some in by_thread.values():
        some.sort(key=lambda one: (one.start, -one.end))
    launched: dict[int, list[tuple[Event, Event]]] = {}
    owner: dict[int, Event] = {}
    for work, call in sorted(rank.launched(), key=lambda pair: pair[1].start):
        if work.category == "kernel" and (found := _around(by_thread[call.thread], call, innermost)) is not None:
            launched.setdefault(id(found), []).append((work, call))
            owner[id(found)] = found
    rows: dict[tuple[str, tuple[str, ...]], list[tuple[float, float]]] = {}
    for key, pairs in launched.items():
        if (name := owner[key].name).startswith("aten::"):
            work, call = pairs[0]
            delays = float(call.start - owner[key].start), float(work.start - call.start)
            rows.setdefault((name, tuple(one.name for one, _ in pairs)), []).append(delays)
    return rows


def _around(operators: list[Event], call: Event, innermost: bool) -> Event | None:
    """The operator around a call."""
    last = bisect_right(operators, call.start, key=lambda one: one.start)
    found = next((one for one in reversed(operators[:last]) if one.end >= call.end), None)
    if found is None or innermost:
        return found
    return next(one for one in operators if one.start == found.start and one.end >= call.end)
