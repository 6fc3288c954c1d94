"""The link to the proxy of this node: lines of JSON over a Unix socket, never waited for."""

from __future__ import annotations

import errno
import logging
import os
import random
import select
import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from stepscope.live.messages import MOST_LINE_BYTES, BadMessage, Message, ToWorker, line_of, to_worker
from stepscope.live.peers import is_friend, peer_of

log = logging.getLogger("stepscope")

RETRY_S = 1.0
"""Mean time between attempts to connect; half of it is random, so that workers do not come all at once."""
MOST_UNSENT = 4 * 1024 * 1024
"""Bytes that wait for a proxy that does not read; the link is then closed."""
_CHUNK = 65_536
_NOT_YET = {errno.EAGAIN, errno.EWOULDBLOCK, errno.EINTR}


class Link:
    """Connects, and connects again. For one thread.

    Args:
        path: Socket of the proxy.
        now_s: A clock that never goes back.
    """

    def __init__(self, path: Path, now_s: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self.refused = ""
        """Why the proxy has refused this worker the last time; empty if it has not."""
        self._now_s = now_s
        self._socket: socket.socket | None = None
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._received = bytearray()
        self._retry_at_s = 0.0
        self._reported: set[str] = set()

    @property
    def is_up(self) -> bool:
        """Whether there is a connection."""
        return self._socket is not None

    def connect(self) -> bool:
        """Try to connect if it is time to; return whether there is a new connection."""
        if self._socket is not None or self._now_s() < self._retry_at_s:
            return False
        self._retry_at_s = self._now_s() + RETRY_S * random.uniform(0.75, 1.25)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            made.setblocking(False)
            made.connect(os.fspath(self.path))
            peer = peer_of(made)
            if peer is not None and not is_friend(peer):
                raise PermissionError(errno.EPERM, f"it belongs to user {peer.user}")
        except OSError as error:
            made.close()
            if error.errno not in (errno.ENOENT, errno.ECONNREFUSED, errno.EAGAIN):
                self._report(f"{self.path}: no link to the proxy ({error.strerror or error})")
            return False
        self._socket = made
        return True

    def send(self, message: Message) -> bool:
        """Send a message, or the part that fits now and the rest with `attend`; return whether there is a link."""
        if self._socket is None:
            return False
        line = line_of(message)
        self._unsent.append(line)
        self._unsent_bytes += len(line)
        if self._unsent_bytes > MOST_UNSENT:
            self._report(f"{self.path}: the proxy does not read; connecting again")
            self.close()
            return False
        self._write()
        return self._socket is not None

    def attend(self, timeout_s: float, wake: int) -> list[ToWorker]:
        """Wait until the proxy says something, something can be sent that waits for it, `wake` is readable, or the time
        is over; return what the proxy has said."""
        poll, own = select.poll(), -1  # not select.select, which takes no descriptors above 1023
        poll.register(wake, select.POLLIN)
        if self._socket is not None:
            own = self._socket.fileno()
            poll.register(own, select.POLLIN | select.POLLOUT if self._unsent else select.POLLIN)
        ready = dict(poll.poll(timeout_s * 1000))
        if wake in ready:
            with suppress(OSError):
                os.read(wake, 4096)
        if ready.get(own, 0) & select.POLLOUT:
            self._write()
        return self._read() if self._socket is not None and ready.get(own, 0) & ~select.POLLOUT else []

    def close(self) -> None:
        """End the connection. Also to be called in a forked child, where it ends only the copy."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._unsent.clear()
        self._unsent_bytes = 0
        self._received.clear()

    def _write(self) -> None:
        while self._socket is not None and self._unsent:
            line = self._unsent[0]
            try:
                sent = self._socket.send(line)
            except OSError as error:
                if error.errno not in _NOT_YET:
                    self.close()
                return
            self._unsent_bytes -= sent
            if sent < len(line):
                self._unsent[0] = line[sent:]
            else:
                self._unsent.popleft()

    def _read(self) -> list[ToWorker]:
        assert self._socket is not None
        try:
            data = self._socket.recv(_CHUNK)
        except OSError as error:
            if error.errno not in _NOT_YET:
                self.close()
            return []
        if not data:
            self.close()
            return []
        self._received += data
        *lines, rest = self._received.split(b"\n")
        self._received = bytearray(rest)
        found = []
        try:
            if len(rest) > MOST_LINE_BYTES:
                raise BadMessage("the proxy sent a line that is too long")
            found = [to_worker(bytes(line)) for line in lines if line]
        except BadMessage as error:
            self._report(str(error))
            self.close()
        return found

    def _report(self, text: str) -> None:
        if text not in self._reported:
            self._reported.add(text)
            log.warning("live: %s", text)
