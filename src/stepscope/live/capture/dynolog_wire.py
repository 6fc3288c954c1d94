"""The datagrams between Kineto and the daemon that it asks for requests, as dynolog defined them.

A datagram is the size of its content (u64), its type (32 bytes, padded with zeros) and the content, in the byte order
of the machine. Kineto sends `ctxt` once (device, process, job) and gets the number of processes on that device; then
`req` every few seconds (kind, number of processes, job, the process and its ancestors) and gets the text of a
configuration, empty if there is none. A text is given out once: Kineto takes each one as a new request.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from stepscope.errors import StepscopeError

SOCKET = b"\0dynolog\0"
"""The abstract name on which Kineto expects the daemon; the zero at its end belongs to it."""
HEAD = struct.Struct("=Q32s")
CONTEXT, REQUEST, ORDER = b"ctxt", b"req", b"stepscope"
"""Types of datagrams; the last one is ours: a command or a process of ours asks the daemon to do something."""
MOST_BYTES = 65_536
"""Longer datagrams are dropped."""
MOST_PROCESSES = 64
"""A process and its ancestors; longer lists are dropped."""
ACTIVITIES = 2
"""The bit of a request's kind that asks for a profile of activities; the other one is for counters."""
_CONTEXT = struct.Struct("=iiq")
_REQUEST = struct.Struct("=iiq")
_MANY = struct.Struct("=i")


class BadDatagram(StepscopeError):
    """Bytes that are no datagram of Kineto or of ours."""


@dataclass(frozen=True)
class Context:
    """A process registers.

    Args:
        device: Its GPU, as it counts them; -1 or 0 on a CPU.
        process: Its id, in its own namespace.
        job: As its launcher numbers it, 0 if unknown.
    """

    device: int
    process: int
    job: int


@dataclass(frozen=True)
class Poll:
    """A process asks whether there is a configuration for it. `processes` are its id and those of its ancestors."""

    kind: int
    job: int
    processes: tuple[int, ...]


@dataclass(frozen=True)
class Order:
    """A command asks the daemon to do something; JSON."""

    content: bytes


def datagram(kind: bytes, content: bytes) -> bytes:
    """A datagram of some type."""
    return HEAD.pack(len(content), kind) + content


def registered(processes: int) -> bytes:
    """The answer to `Context`: how many processes are on that device."""
    return datagram(CONTEXT, _MANY.pack(processes))


def configuration(text: str) -> bytes:
    """The answer to `Poll`; empty text for none."""
    return datagram(REQUEST, text.encode())


def parsed(data: bytes) -> Context | Poll | Order:
    """A datagram from a process.

    Raises:
        BadDatagram: If it is none that this daemon knows.
    """
    if len(data) < HEAD.size:
        raise BadDatagram(f"{len(data)} bytes are too few for a datagram")
    size, kind = HEAD.unpack_from(data)
    content = data[HEAD.size :]
    if size != len(content):
        raise BadDatagram(f"it says {size} bytes and has {len(content)}")
    kind = kind.rstrip(b"\0")
    if kind == CONTEXT and size >= _CONTEXT.size:
        return Context(*_CONTEXT.unpack_from(content))
    if kind == REQUEST and size >= _REQUEST.size:
        asked, count, job = _REQUEST.unpack_from(content)
        if not 0 < count <= MOST_PROCESSES or size < _REQUEST.size + count * _MANY.size:
            raise BadDatagram(f"a request of {count} processes in {size} bytes")
        return Poll(asked, job, struct.unpack_from(f"={count}i", content, _REQUEST.size))
    if kind == ORDER:
        return Order(content)
    raise BadDatagram(f"unknown type {kind[:16]!r}")


@dataclass(frozen=True)
class Profile:
    """A profile to ask a process for. Times are in ms.

    Args:
        file: Where Kineto writes the trace; it puts `_<process>` before the suffix.
        iterations: Steps of the optimizer to record; 0 to record for `duration_ms`.
        roundup: It begins at the next iteration that is a multiple of this, so that all ranks record the same ones.
        duration_ms: How long to record without `iterations`.
        warmup_ms: How long Kineto warms up before; with `iterations` it does not.
        start_ms: When to begin, since the epoch; 0 for at once.
    """

    file: str
    iterations: int = 0
    roundup: int = 1
    duration_ms: int = 500
    warmup_ms: int = 0
    start_ms: int = 0
    shapes: bool = True
    memory: bool = False
    stacks: bool = False
    flops: bool = False
    modules: bool = False

    def text(self) -> str:
        """As Kineto reads it."""
        lines = {"ACTIVITIES_LOG_FILE": self.file, "PROFILE_START_TIME": self.start_ms}
        if self.iterations:
            lines |= {
                "PROFILE_START_ITERATION": 0,
                "PROFILE_START_ITERATION_ROUNDUP": self.roundup,
                "ACTIVITIES_ITERATIONS": self.iterations,
                "ACTIVITIES_WARMUP_ITERATIONS": 0,
            }
        else:
            lines |= {
                "ACTIVITIES_DURATION_MSECS": self.duration_ms,
                "ACTIVITIES_WARMUP_PERIOD_SECS": -(-self.warmup_ms // 1000),
            }
        wanted = {
            "PROFILE_REPORT_INPUT_SHAPES": self.shapes,
            "PROFILE_PROFILE_MEMORY": self.memory,
            "PROFILE_WITH_STACK": self.stacks,
            "PROFILE_WITH_FLOPS": self.flops,
            "PROFILE_WITH_MODULES": self.modules,
        }
        lines |= {name: "true" if state else "false" for name, state in wanted.items()}
        return "\n".join(f"{name}={value}" for name, value in lines.items())

    def file_of(self, process: int) -> str:
        """Where the trace of a process will be."""
        stem, dot, suffix = self.file.rpartition(".")
        return f"{stem}_{process}{dot}{suffix}" if dot and "/" not in suffix else f"{self.file}_{process}"
