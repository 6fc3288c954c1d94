"""A daemon compatible with dynolog: profiles processes that were started with `KINETO_USE_DAEMON=1` and otherwise know
nothing of stepscope.

It listens on the abstract Unix socket that Kineto asks every few seconds. Only processes of the same user are served,
known by the credentials that the kernel attaches to each datagram. Whoever of that user asks by the same socket
(`order`) can list the processes, and request a profile of some.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from stepscope.errors import StepscopeError
from stepscope.live.capture.dynolog_wire import (
    ACTIVITIES,
    MOST_BYTES,
    ORDER,
    SOCKET,
    BadDatagram,
    Context,
    Order,
    Poll,
    Profile,
    configuration,
    datagram,
    parsed,
    registered,
)

log = logging.getLogger("stepscope")

SILENT_S = 60.0
"""A process that has not asked for this long is dropped, as dynolog does; Kineto asks about every 4 s."""
MOST_KNOWN = 1024
"""Processes that are served; further ones are refused until one is dropped."""
POLL_S = 5.0
"""Kineto takes up to this long to ask again."""
WRITING_S = 60.0
"""How long Kineto may take to write a trace after it was recorded."""
_CREDENTIALS = struct.Struct("=iII")
_LOOK_S = 0.2


class NameTaken(StepscopeError):
    """Another daemon listens already."""


@dataclass
class Known:
    """A process that asks for configurations.

    Args:
        process: Its id, in its own namespace.
        ancestors: Those of its parents, nearest first.
        job: As its launcher numbers it.
        device: Its GPU, if it has registered.
        seen_s: When it last asked (`time.monotonic`).
        waiting: The text that it gets at its next question.
        busy_until_s: Until when its last profile may take.
    """

    process: int
    ancestors: tuple[int, ...] = ()
    job: int = 0
    device: int | None = None
    seen_s: float = 0.0
    waiting: str = ""
    busy_until_s: float = 0.0
    file: str = ""


class Outcome(msgspec.Struct, omit_defaults=True, frozen=True):
    """What became of a request: process ids that matched, those that were given the request, those that still record
    an earlier one, and the files that will be written, by process."""

    matched: list[int] = []
    triggered: list[int] = []
    busy: list[int] = []
    files: dict[str, str] = {}
    error: str = ""


class Ask(msgspec.Struct, omit_defaults=True, frozen=True):
    """What a command asks the daemon: to list processes, or to profile those that match. No processes: all of the job;
    job 0: all."""

    what: str = "list"
    processes: list[int] = []
    job: int = 0
    most: int = 64
    profile: dict[str, str | int | bool] = {}


@dataclass
class Daemon:
    """Serves processes while it runs in an event loop: `async with Daemon() as daemon`.

    Args:
        name: The socket's name; another one is for tests.
        now_s: The clock.
    """

    name: bytes = SOCKET
    now_s: Callable[[], float] = time.monotonic
    known: dict[int, Known] = field(default_factory=dict)

    async def __aenter__(self) -> Daemon:
        """Begin to listen.

        Raises:
            NameTaken: If another daemon does.
        """
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            self._socket.bind(self.name)
        except OSError as error:
            self._socket.close()
            if error.errno == errno.EADDRINUSE:
                raise NameTaken(
                    "another daemon serves processes with KINETO_USE_DAEMON=1 on this host already. Use that one, or "
                    "stop it"
                ) from error
            raise
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._readable)
        return self

    async def __aexit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()

    def processes(self) -> list[Known]:
        """The processes that ask now, by id."""
        now_s = self.now_s()
        for one in list(self.known.values()):
            if now_s - one.seen_s > SILENT_S:
                del self.known[one.process]
        return [self.known[process] for process in sorted(self.known)]

    def request(self, profile: Profile, processes: Sequence[int] = (), job: int = 0, most: int = 64) -> Outcome:
        """Have processes record a profile.

        Args:
            profile: What to record.
            processes: Processes or ancestors of some; none for all of the job.
            job: All processes of this job; 0 for any.
            most: At most so many processes, those with the lowest ids.
        """
        wanted = {*processes}
        matched = [
            one
            for one in self.processes()
            if (not job or one.job == job) and (not wanted or wanted & {one.process, *one.ancestors})
        ]
        now_s = self.now_s()
        busy = [one for one in matched if one.waiting or (one.busy_until_s > now_s and not _written(one.file))]
        free = [one for one in matched if one not in busy][:most]
        records_s = 0.0 if profile.iterations else (profile.duration_ms + profile.warmup_ms) / 1000
        for one in free:
            one.waiting = profile.text()
            one.file = profile.file_of(one.process)
            one.busy_until_s = now_s + POLL_S + records_s + WRITING_S
        return Outcome(
            [one.process for one in matched],
            [one.process for one in free],
            [one.process for one in busy],
            {str(one.process): one.file for one in free},
        )

    def _readable(self) -> None:
        """Take all datagrams that wait."""
        for _ in range(100):
            try:
                data, ancillary, flags, sender = self._socket.recvmsg(MOST_BYTES, socket.CMSG_SPACE(_CREDENTIALS.size))
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                log.warning("the socket of Kineto cannot be read: %s", error)
                return
            user = _user_of(ancillary)
            if flags & socket.MSG_TRUNC or user is None or user != os.geteuid():
                log.debug("a datagram of user %s was dropped", user)
                continue
            try:
                answer = self._answer(parsed(data))
            except BadDatagram as error:
                log.debug("a datagram was dropped: %s", error)
                continue
            if answer and sender:
                with suppress(OSError):  # it does not wait for the answer any more
                    self._socket.sendto(answer, sender)

    def _answer(self, message: Context | Poll | Order) -> bytes:
        if isinstance(message, Order):
            return datagram(ORDER, self._obey(message.content))
        if isinstance(message, Context):
            one = self._seen(message.process)
            if one is not None:
                one.device, one.job = message.device, message.job
            return registered(sum(other.device == message.device for other in self.known.values()))
        one = self._seen(message.processes[0])
        if one is None:
            return configuration("")
        one.ancestors, one.job = message.processes[1:], message.job
        text = ""
        if message.kind & ACTIVITIES:
            text, one.waiting = one.waiting, ""
        return configuration(text)

    def _seen(self, process: int) -> Known | None:
        one = self.known.get(process)
        if one is None:
            if len(self.known) >= MOST_KNOWN:
                self.processes()
            if len(self.known) >= MOST_KNOWN:
                return None
            one = self.known[process] = Known(process)
        one.seen_s = self.now_s()
        return one

    def _obey(self, content: bytes) -> bytes:
        try:
            ask = msgspec.json.decode(content, type=Ask)
            if ask.what == "list":
                now_s = self.now_s()
                rows = [
                    {
                        "process": one.process,
                        "ancestors": one.ancestors,
                        "job": one.job,
                        "device": one.device,
                        "asked_before_s": round(now_s - one.seen_s, 1),
                    }
                    for one in self.processes()[:MOST_LISTED]
                ]
                return msgspec.json.encode({"processes": rows, "all": len(self.known)})
            profile = msgspec.convert(ask.profile, Profile)
            return msgspec.json.encode(self.request(profile, ask.processes, ask.job, ask.most))
        except (msgspec.MsgspecError, TypeError, ValueError) as error:
            return msgspec.json.encode(Outcome(error=f"not a request: {error}"))


MOST_LISTED = 200
"""Processes in one answer, which must fit into a datagram."""


async def order(ask: Ask, name: bytes = SOCKET, patience_s: float = 2.0) -> Any:
    """Ask the daemon that runs on this host.

    Returns:
        Its answer, decoded JSON.

    Raises:
        StepscopeError: If none runs, or another one than ours does.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as own:
        own.bind(b"")  # the kernel chooses an abstract name, to which the answer goes
        try:
            own.sendto(datagram(ORDER, msgspec.json.encode(ask)), name)
        except OSError as error:
            raise StepscopeError("no daemon for processes with KINETO_USE_DAEMON=1 runs on this host") from error
        try:
            data = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(own, MOST_BYTES), patience_s)
            answer = parsed(data)
        except (asyncio.TimeoutError, BadDatagram) as error:
            raise StepscopeError(
                "the daemon that serves processes with KINETO_USE_DAEMON=1 on this host is not ours, or of another "
                "user. If it is dynolog, use its own command, dyno gputrace"
            ) from error
    assert isinstance(answer, Order)
    return msgspec.json.decode(answer.content)


async def written(files: Sequence[str], patience_s: float) -> tuple[list[str], list[str]]:
    """Wait until traces are on disk and complete.

    Returns:
        Those that are, and those that were not written in time.
    """
    end = time.monotonic() + patience_s
    sizes: dict[str, int] = {}
    done: set[str] = set()
    while len(done) < len(files) and time.monotonic() < end:
        await asyncio.sleep(_LOOK_S)
        for file in files:
            size = Path(file).stat().st_size if _written(file) else 0
            if size and sizes.get(file) == size and _is_whole(file):
                done.add(file)
            sizes[file] = size
    return [file for file in files if file in done], [file for file in files if file not in done]


def _written(file: str) -> bool:
    return bool(file) and Path(file).is_file()


def _is_whole(file: str) -> bool:
    """Whether a trace has its end: Kineto writes it in pieces."""
    with Path(file).open("rb") as trace:
        trace.seek(max(trace.seek(0, os.SEEK_END) - 64, 0))
        return trace.read().rstrip().endswith(b"}")


def _user_of(ancillary: list[tuple[int, int, bytes]]) -> int | None:
    """The user that sent a datagram, from what the kernel attached."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS and len(data) >= _CREDENTIALS.size:
            _, user, _ = _CREDENTIALS.unpack_from(data)
            return int(user)
    return None
