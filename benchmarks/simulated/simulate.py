"""When everything happens: each host and stream does one thing after the other, and waits for what it depends on.

Nothing competes for a device or a link, so each time is the latest of those that it waits for plus a length, in
whichever order the times are worked out.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from simulated.operations import Network, Operation

REACH_NS = 3000
"""From the end of a launch to the earliest start of its kernel."""
BETWEEN_NS = 800
"""Between two kernels of a stream."""

Program = Sequence[Sequence[Operation]]
"""The operations of a rank, by step."""


@dataclass(slots=True)
class Done:
    """When an operation happened: on the host, and on its stream (the same as on the host if it has none)."""

    step: int
    operation: Operation
    called_ns: int
    returned_ns: int
    start_ns: int
    end_ns: int


@dataclass
class Times:
    """What became of a job."""

    done: list[list[Done]]
    """By rank, in the order of the host."""
    steps: list[list[tuple[int, int]]]
    """Start and end on the host by rank and step."""
    ends: list[int]
    """When the last rank, with all its streams, was through with each step."""
    begun_ns: int

    @property
    def step_ns(self) -> list[int]:
        """Length of each step of the job."""
        return [end - start for start, end in zip([self.begun_ns, *self.ends], self.ends, strict=False)]

    @property
    def total_ns(self) -> int:
        return self.ends[-1] - self.begun_ns


def simulate(programs: Mapping[int, Program], network: Network, noise: Mapping[str, Sequence[float]]) -> Times:
    """Run all ranks.

    Args:
        programs: By rank, from 0 on.
        network: How long calls need once all members are there.
        noise: By group, factors of the lengths of its calls, in order; they repeat.
    """
    meeting: dict[tuple[str, int], list[tuple[_Rank, int, Done]]] = defaultdict(list)
    ranks = [_Rank(programs[rank], meeting) for rank in range(len(programs))]
    ready = deque(ranks)
    while ready:
        rank = ready.popleft()
        for group, sequence in rank.advance():
            there = meeting[group, sequence]
            if len(there) < len(network.groups[group]):
                continue
            factors = noise[group]
            first = there[0][2]
            length = network.transmit_ns(first.operation.operation, group, first.operation.size_bytes, first.step)
            begins = max(done.start_ns for _, _, done in there) + round(length * factors[sequence % len(factors)])
            for member, stream, done in there:
                done.end_ns = member.free[stream] = begins + done.operation.ns
                del member.held[stream]
                if member is not rank:
                    ready.append(member)
            ready.append(rank)
    stuck = [number for number, rank in enumerate(ranks) if not rank.is_through]
    if stuck:
        raise ValueError(f"ranks {stuck[:8]} wait for each other")
    ends = [max(of_ranks) for of_ranks in zip(*(rank.ends() for rank in ranks), strict=True)]
    return Times([rank.done for rank in ranks], [rank.spans for rank in ranks], ends, 0)


class _Rank:
    """A host thread and its streams, as far as they have come."""

    def __init__(self, program: Program, meeting: dict[tuple[str, int], list[tuple[_Rank, int, Done]]]) -> None:
        self.program = program
        self.meeting = meeting
        self.now = 0
        self.done: list[Done] = []
        self.spans: list[tuple[int, int]] = []
        self.free: dict[int, int] = defaultdict(int)
        self.held: dict[int, Done] = {}
        """The call in which a stream waits for other ranks."""
        self._queued: dict[int, deque[Done]] = defaultdict(deque)
        self._recorded: dict[int, int] = {}
        self._sequences: dict[str, int] = defaultdict(int)
        self._step, self._place, self._began = 0, 0, 0

    @property
    def is_through(self) -> bool:
        return self._step == len(self.program) and not any(self._queued.values()) and not self.held

    def ends(self) -> list[int]:
        """End of each step, with all its work on streams."""
        latest = [end for _, end in self.spans]
        for each in self.done:
            latest[each.step] = max(latest[each.step], each.end_ns)
        return latest

    def advance(self) -> list[tuple[str, int]]:
        """Go on until all that is left waits for other ranks; returns the calls that were entered."""
        entered: list[tuple[str, int]] = []
        moved = True
        while moved:
            moved = self._host()
            for stream in list(self._queued):
                moved |= self._stream(stream, entered)
        return entered

    def _host(self) -> bool:
        moved = False
        while self._step < len(self.program):
            operations = self.program[self._step]
            if self._place == 0:
                self._began = self.now
            for operation in operations[self._place :]:
                begins = self.now + operation.gap_ns
                if operation.what == "synchronise":
                    if any(self._queued.values()) or self.held:
                        return moved
                    until = max([begins + operation.launch_ns, *(free + BETWEEN_NS for free in self.free.values())])
                    self.done.append(Done(self._step, operation, begins, until, begins, until))
                    self.now = until
                elif operation.what == "host":
                    self.now = begins + operation.ns
                    self.done.append(Done(self._step, operation, begins, self.now, begins, self.now))
                else:
                    self.now = begins + operation.launch_ns
                    done = Done(self._step, operation, begins, self.now, 0, 0)
                    self.done.append(done)
                    self._queued[operation.stream].append(done)
                self._place += 1
                moved = True
            self.spans.append((self._began, self.now))
            self._step, self._place = self._step + 1, 0
        return moved

    def _stream(self, stream: int, entered: list[tuple[str, int]]) -> bool:
        queued, moved = self._queued[stream], False
        while queued and stream not in self.held:
            done = queued[0]
            operation = done.operation
            if operation.what == "wait":
                if operation.event not in self._recorded:
                    return moved
                done.start_ns = max(self.free[stream], done.returned_ns)
                done.end_ns = self.free[stream] = max(self.free[stream], self._recorded[operation.event])
            elif operation.what == "record":
                done.start_ns = done.end_ns = max(self.free[stream], done.returned_ns)
                self._recorded[operation.event] = done.end_ns
            else:
                done.start_ns = max(self.free[stream] + BETWEEN_NS, done.returned_ns + REACH_NS)
                if operation.what == "call":
                    sequence = self._sequences[operation.group]
                    self._sequences[operation.group] += 1
                    self.held[stream] = done
                    self.meeting[operation.group, sequence].append((self, stream, done))
                    entered.append((operation.group, sequence))
                else:
                    done.end_ns = self.free[stream] = done.start_ns + operation.ns
            queued.popleft()
            moved = True
        return moved
