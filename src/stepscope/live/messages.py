"""What workers, proxies and the manager of a job tell one another.

On the link between a worker and the proxy of its node, each message is one line of JSON, told apart by `type`. Between
proxy and manager, the same messages travel as described in `control/protocol.proto`. Times are int64 ns; `*_at_ns` are
since the epoch on the clock of the sender's host, and are never compared between hosts. None is unknown.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec

from stepscope.errors import StepscopeError

MOST_LINE_BYTES = 8 * 1024 * 1024
"""Longer lines are refused, and the link is closed."""
MOST_TEXT = 1024
"""Names of calls, groups and hosts are cut to this length."""
MOST_REVISION = 2**53
"""Of a state of the switches. No manager counts so far, and one that learnt such a number could not count on from
there."""

Revision = Annotated[int, msgspec.Meta(ge=0, le=MOST_REVISION)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""What fits into the messages between proxy and manager, and into the arithmetic of whoever reads them."""


class Message(msgspec.Struct, omit_defaults=True, frozen=True, tag_field="type"):
    """A message; unknown fields are ignored, so that releases can differ."""


class Group(msgspec.Struct, omit_defaults=True, frozen=True):
    """A process group: its key, its members by global rank, and what it is called, e.g. `tp`."""

    key: str
    members: list[Int64]
    name: str = ""


class Hello(Message, frozen=True, tag="hello"):
    """A worker registers; also sent again when its rank or its groups change.

    Args:
        job: Task id.
        pid: Its process; a restarted rank has another one.
        started_at_ns: When the worker started.
        device: `cpu`, `cuda`, `rocm` or `npu`.
        revision: Of the switch state that it has applied; 0 if nobody has switched yet.
        switches: Names of the kinds that are on.
        directory: Where its records are written; empty if they are not.
    """

    job: str
    rank: Int64
    pid: Int64
    host: str
    started_at_ns: Int64
    world_size: Int64 | None = None
    local_rank: Int64 | None = None
    framework: str = ""
    device: str = ""
    revision: Revision = 0
    switches: list[str] = []
    groups: list[Group] = []
    directory: str = ""


class Calls(msgspec.Struct, omit_defaults=True, frozen=True):
    """The calls of one operation in one group that ended in a step.

    Args:
        operation: As in the table `collectives`: `all_reduce`, `send`...
        group: Key of the group.
        count: Number of calls.
        time_ns: Sum of their durations as seen by the host; of an asynchronous call, that of its launch.
        shortest_ns: The shortest of them.
        device_ns: Sum of their durations on the device, including the wait for peers.
        size_bytes: Sum of the payloads.
        peer: The other rank of sends and receives.
        launched: Whether they only launch the operation, so that `time_ns` holds neither wait nor transfer.
        shortest_device_ns: The shortest of them on the device.
    """

    operation: str
    group: str
    count: Int64
    time_ns: Int64
    shortest_ns: Int64
    device_ns: Int64 | None = None
    size_bytes: Int64 | None = None
    peer: Int64 | None = None
    launched: bool = False
    shortest_device_ns: Int64 | None = None


class Digest(msgspec.Struct, omit_defaults=True, frozen=True):
    """What one rank spent one step on. The time of a kind that was off for part of the step is None.

    Args:
        step: Number of the step, from 1 per process.
        end_at_ns: End of the step.
        step_ns: Its duration, from the end of the step before, or from its first activity.
        forward_ns: Forward passes.
        backward_ns: Backward passes. In data-parallel training they include waits for gradients of other ranks.
        backward_own_ns: The part of the backward pass until this rank's own gradients were ready.
        optimizer_ns: Calls of optimizers.
        data_ns: Waits for batches.
        checkpoint_ns: Saving checkpoints.
        communication_ns: Communication, as seen by the host.
        garbage_ns: Python's garbage collections; not part of the kinds, but within them.
        run_delay_ns: How long the training thread was ready to run while processors ran others; of short steps, the
            mean of some.
        device_step_ns: Duration of the step on the device.
        device_forward_ns: Duration of forward passes on the device.
        units: Elements in the inputs of the forward passes, a measure of the work in this step.
        calls: Communication by operation, group and peer.
    """

    rank: Int64
    step: Int64
    end_at_ns: Int64
    step_ns: Int64
    forward_ns: Int64 | None = None
    backward_ns: Int64 | None = None
    backward_own_ns: Int64 | None = None
    optimizer_ns: Int64 | None = None
    data_ns: Int64 | None = None
    checkpoint_ns: Int64 | None = None
    communication_ns: Int64 | None = None
    garbage_ns: Int64 | None = None
    run_delay_ns: Int64 | None = None
    device_step_ns: Int64 | None = None
    device_forward_ns: Int64 | None = None
    units: Int64 | None = None
    calls: list[Calls] = []


class Digests(Message, frozen=True, tag="digests"):
    """Steps that have ended since the last such message, in order; `lost` counts those left out while the link was
    down or the queue was full."""

    digests: list[Digest]
    lost: Int64 = 0


class Inside(msgspec.Struct, omit_defaults=True, frozen=True):
    """A range that a thread of a worker is in: its kind of mark and for how long; of a call also the operation, the
    group and how many calls of that group ended before."""

    mark: str
    for_ns: Int64
    operation: str = ""
    group: str = ""
    calls_before: Int64 | None = None


class Pulse(Message, frozen=True, tag="pulse"):
    """Once a second: the worker's process is alive, and where its training is.

    Args:
        step: Steps that have ended.
        idle_ns: Since when nothing has happened in any hook.
        inside: What its threads are in at the moment.
        revision: Of the switch state that it has applied.
        dropped: Records dropped so far because the disk was too slow or full.
        problem: Why it writes no records; empty if it does.
    """

    rank: Int64
    step: Int64
    idle_ns: Int64
    inside: list[Inside] = []
    revision: Revision = 0
    dropped: Int64 = 0
    problem: str = ""


class Applied(Message, frozen=True, tag="applied"):
    """A worker has applied a state of the switches, or could not. `at_ns` is when its hooks began to follow it."""

    rank: Int64
    revision: Revision
    switches: list[str]
    at_ns: Int64
    error: str = ""


class Captured(Message, frozen=True, tag="captured"):
    """A capture or dump has ended: the files that it left, or why there are none.

    Args:
        files: Absolute paths on the worker's host.
        steps: The first and last step in it.
        directory: What to give to `stepscope analyze` on that host.
        note: What to know about it, e.g. that it has other steps than were asked for.
    """

    rank: Int64
    capture: str
    files: list[str] = []
    steps: list[Int64] = []
    error: str = ""
    directory: str = ""
    note: str = ""


class Checked(Message, frozen=True, tag="checked"):
    """Results of an active check by name, e.g. `gemm_ns`; of links as `link_<peer>_ns`."""

    rank: Int64
    check: str
    results: dict[str, Int64] = {}
    error: str = ""


class Apply(Message, frozen=True, tag="apply"):
    """To a worker: record these kinds from now on. A revision that is not newer than the applied one is ignored, but
    acknowledged."""

    revision: Revision
    switches: list[str]


class Capture(Message, frozen=True, tag="capture"):
    """To a worker: profile some whole steps with the framework's profiler.

    Args:
        capture: Identifies it in `Captured`.
        steps: How many steps.
        first_step: First of them, so that ranks record the same ones; 0 for the next.
        seconds: It ends after this time at the latest.
    """

    capture: str
    steps: Int64
    first_step: Int64 = 0
    seconds: float = 60.0
    shapes: bool = True
    stacks: bool = False


class Check(Message, frozen=True, tag="check"):
    """To a worker: measure the device, and links to `peers`, between two steps. All ranks named take part at
    `at_step`."""

    check: str
    kinds: list[str]
    at_step: Int64
    peers: list[Int64] = []


class Dump(Message, frozen=True, tag="dump"):
    """To a worker: write down at once what it is in, also while its training hangs; answered by `Captured`.

    Args:
        capture: Identifies it in `Captured`.
        stacks: Python stacks of its threads, where no other process may read them.
        calls: The last calls of the flight recorder of torch.distributed, if that records.
    """

    capture: str
    stacks: bool = True
    calls: bool = True


class Refused(Message, frozen=True, tag="refused"):
    """To a worker, before the link is closed: why it was not accepted."""

    reason: str


FromWorker = Hello | Digests | Pulse | Applied | Captured | Checked
ToWorker = Apply | Capture | Check | Dump | Refused

_T = TypeVar("_T")
_from_worker: msgspec.json.Decoder[FromWorker] = msgspec.json.Decoder(FromWorker)
_to_worker: msgspec.json.Decoder[ToWorker] = msgspec.json.Decoder(ToWorker)
_encoder = msgspec.json.Encoder()


class BadMessage(StepscopeError):
    """A line that is no message."""


def line_of(message: Message) -> bytes:
    """A message as one line."""
    return _encoder.encode(message) + b"\n"


def from_worker(line: bytes) -> FromWorker:
    """A message of a worker.

    Raises:
        BadMessage: If it is none.
    """
    return _decoded(_from_worker, line)


def to_worker(line: bytes) -> ToWorker:
    """A message to a worker.

    Raises:
        BadMessage: If it is none.
    """
    return _decoded(_to_worker, line)


def _decoded(decoder: msgspec.json.Decoder[_T], line: bytes) -> _T:
    if len(line) > MOST_LINE_BYTES:
        raise BadMessage(f"a message has {len(line):,} bytes; at most {MOST_LINE_BYTES:,} are read")
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadMessage(f"not a message of a live worker ({error}): {line[:80]!r}") from error
