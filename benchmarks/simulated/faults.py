"""What can be wrong with a job, as changes to its programs and its network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from random import Random

from simulated.layouts import COMPUTE, SIDE
from simulated.operations import Network, Operation, SlowPath

Operations = list[Operation]
Change = Callable[[Operations], Operations]


FASTER = "faster"
"""Kind of a fault of all ranks but one: nobody is to be accused, as that one may be special."""


@dataclass(frozen=True)
class Fault:
    """One cause of lost time.

    Args:
        kind: What a tool should say of it.
        unit: What it strikes: `rank`, `ranks` (several, no unit), `tensor group`, `stage`, `host`, `nic`, `link`,
            `rotating` (another rank in each step), `job` (all ranks).
        ranks: The ranks it strikes; of a link its ends, of a rotating one those it visits.
        change: Changes a copy of the operations of a rank in a step; None if only the network is slow.
        path: Slow links.
        steps: Its steps, counted from 0; None for all.
        rotates: Whether it strikes only one of `ranks` in each step, by chance.
        also: Other kinds that are right as well.
    """

    kind: str
    unit: str
    ranks: tuple[int, ...]
    change: Change | None = None
    path: SlowPath | None = None
    steps: frozenset[int] | None = None
    rotates: bool = False
    also: tuple[str, ...] = ()
    reason: str = ""
    """What the recording shows of its cause, in lower case, as an answer should quote it."""
    counters: tuple[tuple[str, float, float], ...] = ()
    """Counters that it moves: name, usual value and value on its ranks."""

    def strikes(self, rank: int, step: int) -> bool:
        if self.change is None or rank not in self.ranks or (self.steps is not None and step not in self.steps):
            return False
        return not self.rotates or Random(step * 7919 + 17).choice(self.ranks) == rank


def faulted(programs: dict[int, list[Operations]], faults: Sequence[Fault]) -> dict[int, list[Operations]]:
    """The programs with faults; what no fault strikes is shared with the originals."""
    found = {}
    for rank, steps in programs.items():
        found[rank] = list(steps)
        for fault in faults:
            for step, operations in enumerate(found[rank]):
                if fault.strikes(rank, step) and fault.change is not None:
                    found[rank][step] = fault.change([copy(each) for each in operations])
    return found


def slowed(network: Network, faults: Sequence[Fault]) -> Network:
    """The network with the slow links of faults."""
    slow = [fault.path for fault in faults if fault.path is not None]
    return Network(
        network.ranks_per_host,
        network.inside_bytes_per_s,
        network.nic_bytes_per_s,
        network.latency_ns,
        slow,
        network.groups,
    )


def kernels(factor: float, match: str = "", kind: str = "compute") -> Change:
    """Kernels, and operators of a CPU, whose names contain `match`, take longer."""

    def change(operations: Operations) -> Operations:
        for each in operations:
            is_one = each.what == "kernel" and each.kind == kind
            if (is_one or (each.what == "host" and each.kind == "operator")) and match in each.name:
                each.ns = round(each.ns * factor)
        return operations

    return change


def launches(extra_ns: int) -> Change:
    """The host needs longer for each launch."""

    def change(operations: Operations) -> Operations:
        for each in operations:
            if each.what in ("kernel", "call"):
                each.gap_ns += extra_ns
        return operations

    return change


def waits_for_data(extra_ns: int) -> Change:
    """The loader has the next batch later."""

    def change(operations: Operations) -> Operations:
        for each in operations:
            if each.what == "host" and "DataLoader" in each.name:
                each.ns += extra_ns
        return operations

    return change


def stops(length_ns: int, name: str = "", category: str = "", place: float = 0.4, times: int = 1) -> Change:
    """The host does something else in between.

    Args:
        length_ns: How long.
        name, category: Of the range that shows it; none if the trace shows nothing.
        place: Where among its operations, as a share.
        times: How often, evenly among what follows.
    """

    def change(operations: Operations) -> Operations:
        for number in reversed(range(times)):
            at = round(len(operations) * (place + (1 - place) * number / times))
            if name:
                operations.insert(at, Operation("host", name, length_ns, kind=category))
            else:
                operations[at].gap_ns += length_ns
        return operations

    return change


def reads_back(times: int) -> Change:
    """The script asks for a value of the device in between (`.item()`), several times."""

    def change(operations: Operations) -> Operations:
        kernels_at = [at for at, each in enumerate(operations) if each.what == "kernel"]
        for number in reversed(range(times)):
            at = kernels_at[round(len(kernels_at) * (number + 0.5) / times)]
            operations[at].gap_ns += 30_000  # with the value the script decides something, or logs it
            operations.insert(at, Operation("synchronise", "cudaStreamSynchronize", operator="aten::item", gap_ns=3000))
        return operations

    return change


def waits_for_event(length_ns: int) -> Change:
    """Computing waits for an event on another stream, on which a function of the host runs, which is no kernel."""

    def change(operations: Operations) -> Operations:
        event = -1 - min(each.event for each in operations if each.what == "record")
        at = len(operations) // 3
        operations[at:at] = [
            Operation("callback", "cudaLaunchHostFunc", length_ns, gap_ns=1000, stream=SIDE),
            Operation("record", "cudaEventRecord", gap_ns=500, launch_ns=1000, stream=SIDE, event=event),
            Operation("wait", "cudaStreamWaitEvent", gap_ns=500, launch_ns=1000, stream=COMPUTE, event=event),
        ]
        return operations

    return change
