"""One process being attached to, from the side of the user: injects the line, then talks to what runs in there."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stepscope._version import __version__
from stepscope.errors import StepscopeError
from stepscope.live.attach import permission
from stepscope.live.attach.injection import Injected, Method, inject
from stepscope.live.attach.permission import CannotAttach
from stepscope.live.attach.processes import Process, look
from stepscope.live.peers import peer_of

Told = dict[str, Any]
"""A message from the process: `type` and its content."""
RECORDING, WORKER = "stepscope.live.attach.recording", "stepscope.live.attach.worker"
"""Modules that do the work in the process."""
_LENT = ("psutil", "msgspec")
"""Packages that the work needs besides the standard library; lent to a process that does not have them."""
_LINE_BYTES = 1 << 20
"""Longer messages are not read."""
_ROOM = re.compile(r"[\w./-]{1,80}")
"""Directories that debuggers take without quoting, short enough for the name of a socket."""


@dataclass
class _Room:
    """A private directory that the process can read, with a socket on which we listen."""

    path: Path
    listener: socket.socket

    @classmethod
    def make(cls, process: Process) -> _Room:
        """Make it, for the user of the process."""
        base = tempfile.gettempdir()
        path = Path(tempfile.mkdtemp(prefix="stepscope-", dir=base if _ROOM.fullmatch(base) else "/tmp"))
        shutil.copyfile(Path(__file__).with_name("visitor.py"), path / "visitor.py")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(path / "socket"))
        listener.listen(1)
        if os.geteuid() == 0 and process.users[1] != 0:
            for file in (path, path / "visitor.py", path / "socket"):
                os.chown(file, process.users[1], -1)
        return cls(path, listener)

    def close(self) -> None:
        """Remove it."""
        self.listener.close()
        shutil.rmtree(self.path, ignore_errors=True)


class Session:
    """A connection into a process, once `attach` and `connect` are done. Use it in a `with` block.

    Args:
        pid: The process.

    Raises:
        CannotAttach: If it cannot be attached to, with the reason and what to do.
    """

    def __init__(self, pid: int) -> None:
        self.process = look(pid)
        permission.check(self.process)
        self.injected = Injected("")
        self._room = _Room.make(self.process)
        self._connection: socket.socket | None = None
        self._received = b""
        self.is_open = False
        """Whether the process is connected."""

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process."""
        return self.process.pid

    def attach(self, method: Method = "auto") -> None:
        """Inject the line. The process is stopped for some tenths of a second.

        Raises:
            CannotAttach: If that is not possible.
        """
        self.injected = inject(self.process, self._room.path, method)

    def connect(self, wait_s: float) -> Told | None:
        """Wait for the process to connect; returns its first message, or None if it has not come yet.

        Raises:
            CannotAttach: If it has ended.
        """
        if not select.select([self._room.listener], [], [], wait_s)[0]:
            if not _runs(self.process):
                raise CannotAttach(f"{self.pid} has ended before it came to a safe place to attach")
            return None
        connection, _ = self._room.listener.accept()
        peer = peer_of(connection)
        if peer is None or peer.pid != self.pid or peer.user not in {*self.process.users, os.geteuid()}:
            connection.close()
            return None
        connection.settimeout(10)
        self._connection, self.is_open = connection, True
        return next((told for told in self.told(10) if told["type"] == "hello"), None)

    def work(self, module: str, version: tuple[int, int], **order: Any) -> None:
        """Have the process import stepscope and begin.

        Args:
            module: `RECORDING` or `WORKER`.
            version: Python's version in the process.
            order: What it shall do.
        """
        home = Path(__file__).resolve().parents[3]
        self.send(
            "work",
            module=module,
            home=str(home),
            version=__version__,
            lent=lent(version),
            page=self.injected.page,
            **order,
        )

    def send(self, kind: str, **content: Any) -> None:
        """Send a message; one that does not arrive is noticed by `told`."""
        if self._connection is not None:
            with suppress(OSError):
                self._connection.sendall(json.dumps({"type": kind, **content}).encode() + b"\n")

    def fileno(self) -> int:
        """The connection, for waiting on several."""
        return -1 if self._connection is None else self._connection.fileno()

    def told(self, wait_s: float) -> Iterator[Told]:
        """The messages that arrive within some time. Once the connection has ended, `is_open` is false."""
        if self._connection is None or not self.is_open:
            return
        if not select.select([self._connection], [], [], wait_s)[0]:
            return
        try:
            more = self._connection.recv(65536)
        except OSError:
            more = b""
        self._received += more
        if not more or len(self._received) > _LINE_BYTES:
            self.is_open = False
        *lines, self._received = self._received.split(b"\n")
        for line in lines:
            with suppress(ValueError):
                message = json.loads(line)
                if isinstance(message, dict) and isinstance(message.get("type"), str):
                    self.is_open = self.is_open and message["type"] != "left"
                    yield message

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return not _runs(self.process)

    def look(self) -> None:
        """Notice that the process has ended, although a child of it still holds the connection."""
        if self.is_open and self.has_ended and not select.select([self], [], [], 0)[0]:
            self.is_open = False

    def close(self) -> None:
        """End the connection: what runs in the process then ends and removes itself, unless it is to stay."""
        if self._connection is not None:
            self._connection.close()
        self.is_open = False
        self._room.close()


def lent(version: tuple[int, int]) -> dict[str, str]:
    """Packages of ours that work in a Python of this version, with their directories."""
    found = {}
    for name in _LENT:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            continue
        package = Path(spec.origin).parent
        compiled = [file.name for file in package.glob("*.so")]
        fits = version == sys.version_info[:2] or all(file.endswith(".abi3.so") for file in compiled)
        if fits:
            found[name] = str(package.parent)
    return found


def _runs(process: Process) -> bool:
    try:
        return look(process.pid).state not in "ZX"
    except StepscopeError:
        return False


def wait_for(sessions: Mapping[int, Session], wait_s: float) -> list[tuple[Session, Told]]:
    """Messages from any of several processes, within some time."""
    there = [one for one in sessions.values() if one.is_open]
    if not there:
        time.sleep(wait_s)
        return []
    ready = select.select(there, [], [], wait_s)[0]
    return [(one, told) for one in ready for told in one.told(0)]
