"""Stored records of one rank, ours or TaskD's, as digests of its steps, so that the detector runs over them as well.

Records hold less than a worker sends: no backward passes, optimizers and garbage collections.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from stepscope.errors import UnreadableInput
from stepscope.json_files import read_object
from stepscope.live.call_sums import CallSums
from stepscope.live.messages import Calls, Digest, Group, Hello
from stepscope.recording_format.light import DEFAULT_GROUP, GROUP_FILE, WORKER_FILE, call_in, groups_in, kind_of
from stepscope.recording_format.light_ranges import Assembler, LightRange
from stepscope.recording_format.marks import CHECKPOINT, COLLECTIVE, DATA, FORWARD, STEP, MarkKind

MOST_WAITING = 50_000
"""Ranges that wait for the end of their step; beyond, the oldest are left out, as when steps are not recorded."""
MOST_PROCESSES = 16
"""The last processes of a rank that are compared with each other."""
_LARGEST_FILE = 1 << 20


@dataclass
class _Step:
    """A step that has ended, and what lies in it."""

    number: int
    start_ns: int
    end_ns: int
    device_ns: int | None
    process: int
    ranges: list[tuple[MarkKind, LightRange]] = field(default_factory=list)

    def of(self, kind: MarkKind) -> list[LightRange]:
        """Its ranges of a kind, without those inside others of the kind."""
        found: list[LightRange] = []
        until = 0
        for one in sorted(
            (one for each, one in self.ranges if each == kind), key=lambda one: (one.start_ns, -(one.end_ns or 0))
        ):
            if (one.end_ns or 0) > until or kind == COLLECTIVE:
                found.append(one)
                until = one.end_ns or 0
        return found

    @property
    def calls(self) -> int:
        """Number of calls in it."""
        return sum(kind == COLLECTIVE for kind, _ in self.ranges)


class RecordedRank:
    """Turns the records of one rank into what its worker would have sent.

    A step is given when the next one has ended, since the times of its ranges on the device may come late.

    Args:
        directory: Of the rank, named by its number; `worker.json` and `parallel_group.json` in it are used if present.
    """

    def __init__(self, directory: Path) -> None:
        self.rank = int(directory.name)
        self.assembler = Assembler()
        """Its `problems` count what could not be read."""
        self.left_out = 0
        """Ranges that belong to no recorded step."""
        self.rivals: tuple[int, int] | None = None
        """Two processes that have written at the same time, so that their steps are mixed; None if there are none."""
        self._directory = directory
        self._waiting: list[tuple[MarkKind, LightRange]] = []
        self._ended: _Step | None = None
        self._before: _Step | None = None
        self._process: int | None = None
        self._seen: set[MarkKind] = set()
        self._until_ns: dict[int, int] = {}
        """When the last step of each process ended."""

    def feed(self, lines: bytes) -> Iterator[Hello | Digest]:
        """What whole lines that were appended tell: a `Hello` whenever another process has begun to write."""
        yield from self._take(self.assembler.feed(lines))

    def finish(self) -> Iterator[Hello | Digest]:
        """The last step."""
        yield from self._take(self.assembler.finish())
        if self._ended is not None:
            for kind, one in self._waiting:
                if one.process == self._ended.process and self._ended.start_ns <= one.start_ns < self._ended.end_ns:
                    self._ended.ranges.append((kind, one))
            yield self._digest(self._ended, None)
            self._before, self._ended = self._ended, None
        self._waiting.clear()

    def _take(self, ranges: Iterable[LightRange]) -> Iterator[Hello | Digest]:
        for one in ranges:
            known = kind_of(one.name, one.domain)
            if known is None or one.end_ns is None or one.end_ns < one.start_ns:
                continue
            kind, number = known
            if kind != STEP:
                self._waiting.append((kind, one))
                if len(self._waiting) > MOST_WAITING:
                    half = len(self._waiting) // 2
                    self.left_out += half
                    del self._waiting[:half]
                continue
            self._note(one.process, one.start_ns, one.end_ns)
            last = self._ended or self._before
            restarted = last is not None and (one.process != last.process or number <= last.number)
            if restarted and self._ended is not None:
                yield self._digest(self._ended, None)
                self._ended = None
            if restarted or self._process is None:
                self._before = None
                self._process = one.process
                yield _hello(self._directory, self.rank, one.process, one.start_ns)
            step = self._step(number, one)
            if self._ended is not None:
                yield self._digest(self._ended, step)
                self._before = self._ended
            self._ended = step

    def _note(self, process: int, start_ns: int, end_ns: int) -> None:
        """A step that begins before the last one of another process has ended: both run, and none was restarted."""
        for other, until_ns in self._until_ns.items():
            if other != process and start_ns < until_ns:
                self.rivals = other, process
        self._until_ns[process] = max(end_ns, self._until_ns.get(process, 0))
        while len(self._until_ns) > MOST_PROCESSES:
            del self._until_ns[next(iter(self._until_ns))]

    def _step(self, number: int, one: LightRange) -> _Step:
        """A step, with the ranges since the one before. Batches that were loaded between the two, and checkpoints that
        were saved, belong to it: its time begins with them."""
        assert one.end_ns is not None
        last = self._ended or self._before
        since_ns = last.end_ns if last is not None else 0
        step = _Step(number, one.start_ns, one.end_ns, _device_ns(one), one.process)
        later: list[tuple[MarkKind, LightRange]] = []
        for kind, inner in self._waiting:
            if inner.start_ns >= one.end_ns:
                later.append((kind, inner))
            elif inner.process != one.process or inner.start_ns < since_ns:
                if last is not None and inner.process == last.process and inner.start_ns >= last.start_ns:
                    last.ranges.append((kind, inner))  # its times on the device came late
                else:
                    self.left_out += 1
            elif inner.start_ns >= one.start_ns or kind in (DATA, CHECKPOINT) or last is not None:
                step.ranges.append((kind, inner))
            else:
                self.left_out += 1
        self._waiting = later
        between = [inner.start_ns for kind, inner in step.ranges if kind in (DATA, CHECKPOINT)]
        step.start_ns = min([step.start_ns, *between])
        return step

    def _digest(self, step: _Step, following: _Step | None) -> Digest:
        sums = {kind: step.of(kind) for kind in (FORWARD, DATA, CHECKPOINT, COLLECTIVE)}
        self._seen.update(kind for kind, ranges in sums.items() if ranges)
        communicates = self._communicates(step, following)
        device = [device_ns for one in sums[FORWARD] if (device_ns := _device_ns(one)) is not None]
        return Digest(
            rank=self.rank,
            step=step.number,
            end_at_ns=step.end_ns,
            step_ns=step.end_ns - step.start_ns,
            forward_ns=_total(sums[FORWARD]) if sums[FORWARD] else None,
            data_ns=_total(sums[DATA]) if DATA in self._seen else None,
            checkpoint_ns=_total(sums[CHECKPOINT]) if CHECKPOINT in self._seen else None,
            communication_ns=_total(sums[COLLECTIVE]) if communicates else None,
            device_step_ns=step.device_ns,
            device_forward_ns=sum(device) if device and len(device) == len(sums[FORWARD]) else None,
            calls=_calls(sums[COLLECTIVE]) if communicates else [],
        )

    def _communicates(self, step: _Step, following: _Step | None) -> bool:
        """Whether the calls of a step were recorded, and all of them: not if recording them was switched on or off
        during the step, which shows by fewer calls than in the step beside it."""
        count = step.calls
        if not count:
            return False
        if self._before is None or not self._before.calls:
            return following is not None and count >= following.calls
        return (following is not None and following.calls > 0) or count >= self._before.calls


def _total(ranges: Iterable[LightRange]) -> int:
    return sum((one.end_ns or one.start_ns) - one.start_ns for one in ranges)


def _calls(ranges: Iterable[LightRange]) -> list[Calls]:
    """The calls by operation, group, peer, and whether the host only launches them."""
    sums = CallSums()
    for one in ranges:
        call, device_ns = call_in(one.name), _device_ns(one)
        sums.add(
            call.operation,
            call.group or "",
            call.peer,
            launched=call.is_async or device_ns is not None,
            time_ns=_total([one]),
            device_ns=device_ns,
            size_bytes=call.size_bytes,
        )
    return sums.as_calls()


def _device_ns(one: LightRange) -> int | None:
    """The duration of a range on the device; None if it is unknown."""
    if one.device_start_ns is None or one.device_end_ns is None:
        return None
    return max(one.device_end_ns - one.device_start_ns, 0)


def _hello(directory: Path, rank: int, process: int, at_ns: int) -> Hello:
    """What the rank is, as far as it is known."""
    said = _read(directory / WORKER_FILE)
    try:
        known = msgspec.convert(said, Hello)
    except msgspec.ValidationError:
        # hosts that are unknown are not one host
        known = Hello(job=directory.parent.name, rank=rank, pid=process, host=f"of rank {rank}", started_at_ns=at_ns)
    same = msgspec.structs.replace(known, rank=rank, groups=known.groups or groups_of(directory))
    return same if same.pid == process else msgspec.structs.replace(same, pid=process, started_at_ns=at_ns)


def groups_of(directory: Path) -> list[Group]:
    """The groups in `parallel_group.json`, ours or TaskD's; none if it is missing or damaged."""
    found = groups_in(_read(directory / GROUP_FILE))
    return [Group(key, members, "" if name == DEFAULT_GROUP else name) for key, name, members in found]


def _read(file: Path) -> dict[str, object]:
    try:
        return read_object(file, most_bytes=_LARGEST_FILE)
    except UnreadableInput:
        return {}
