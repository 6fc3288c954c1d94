"""What workers, proxies and the manager of a job tell one another.

On the link between a worker and the proxy of its node, each message is one line of JSON, told apart by `type`. Between
proxy and manager, the same messages travel as described in `control/protocol.proto`. Times are int64 ns; `*_at_ns` are
since the epoch on the clock of the sender's host, and are never compared between hosts. None is unknown.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from stepscope.errors import StepscopeError

MOST_LINE_BYTES = 8 * 1024 * 1024
"""Longer lines are refused, and the link is closed."""
MOST_TEXT = 1024
"""Names of calls, groups and hosts are cut to this length."""


class Message(msgspec.Struct, omit_defaults=True, frozen=True, tag_field="type"):
    """A message; unknown fields are ignored, so that releases can differ."""


class Group(msgspec.Struct, omit_defaults=True, frozen=True):
    """A process group: its key, its members by global rank, and what it is called, e.g. `tp`."""

    key: str
    members: list[int]
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
    rank: int
    pid: int
    host: str
    started_at_ns: int
    world_size: int | None = None
    local_rank: int | None = None
    framework: str = ""
    device: str = ""
    revision: int = 0
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
    count: int
    time_ns: int
    shortest_ns: int
    device_ns: int | None = None
    size_bytes: int | None = None
    peer: int | None = None
    launched: bool = False
    shortest_device_ns: int | None = None


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
        run_delay_ns: How long the training thread was ready to run while processors ran others.
        device_step_ns: Duration of the step on the device.
        device_forward_ns: Duration of forward passes on the device.
        units: Elements in the inputs of the forward passes, a measure of the work in this step.
        calls: Communication by operation, group and peer.
    """

    rank: int
    step: int
    end_at_ns: int
    step_ns: int
    forward_ns: int | None = None
    backward_ns: int | None = None
    backward_own_ns: int | None = None
    optimizer_ns: int | None = None
    data_ns: int | None = None
    checkpoint_ns: int | None = None
    communication_ns: int | None = None
    garbage_ns: int | None = None
    run_delay_ns: int | None = None
    device_step_ns: int | None = None
    device_forward_ns: int | None = None
    units: int | None = None
    calls: list[Calls] = []


class Digests(Message, frozen=True, tag="digests"):
    """Steps that have ended since the last such message, in order; `lost` counts those left out while the link was
    down or the queue was full."""

    digests: list[Digest]
    lost: int = 0


class Inside(msgspec.Struct, omit_defaults=True, frozen=True):
    """A range that a thread of a worker is in: its kind of mark and for how long; of a call also the operation, the
    group and how many calls of that group ended before."""

    mark: str
    for_ns: int
    operation: str = ""
    group: str = ""
    calls_before: int | None = None


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

    rank: int
    step: int
    idle_ns: int
    inside: list[Inside] = []
    revision: int = 0
    dropped: int = 0
    problem: str = ""


class Applied(Message, frozen=True, tag="applied"):
    """A worker has applied a state of the switches, or could not. `at_ns` is when its hooks began to follow it."""

    rank: int
    revision: int
    switches: list[str]
    at_ns: int
    error: str = ""


class Captured(Message, frozen=True, tag="captured"):
    """A capture or dump has ended: the files that it left, or why there are none.

    Args:
        files: Absolute paths on the worker's host.
        steps: The first and last step in it.
        directory: What to give to `stepscope analyze` on that host.
        note: What to know about it, e.g. that it has other steps than were asked for.
    """

    rank: int
    capture: str
    files: list[str] = []
    steps: list[int] = []
    error: str = ""
    directory: str = ""
    note: str = ""


class Checked(Message, frozen=True, tag="checked"):
    """Results of an active check by name, e.g. `gemm_ns`; of links as `link_<peer>_ns`."""

    rank: int
    check: str
    results: dict[str, int] = {}
    error: str = ""


class Apply(Message, frozen=True, tag="apply"):
    """To a worker: record these kinds from now on. A revision that is not newer than the applied one is ignored, but
    acknowledged."""

    revision: int
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
    steps: int
    first_step: int = 0
    seconds: float = 60.0
    shapes: bool = True
    stacks: bool = False


class Check(Message, frozen=True, tag="check"):
    """To a worker: measure the device, and links to `peers`, between two steps. All ranks named take part at
    `at_step`."""

    check: str
    kinds: list[str]
    at_step: int
    peers: list[int] = []


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
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadMessage(f"not a message of a live worker ({error}): {line[:80]!r}") from error
