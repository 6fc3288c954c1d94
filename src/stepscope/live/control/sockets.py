"""A Unix socket that only this user can reach, on which one process at a time listens."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from stepscope.errors import StepscopeError
from stepscope.record.files import FILE_MODE, make_private

LONGEST_PATH = 100
"""Longer paths do not fit into the address of a Unix socket (107 bytes on Linux, 103 on macOS)."""
_BACKLOG = 256


@dataclass
class PrivateSocket:
    """A place for a socket. Use `claim`, then bind to `path`; `release` at the end."""

    path: Path

    def claim(self) -> None:
        """Make its directory, and be the only one to use it until this process ends, however it does.

        Raises:
            StepscopeError: If another process listens there, or others could reach it.
        """
        if len(os.fsencode(self.path)) > LONGEST_PATH:
            raise StepscopeError(
                f"{self.path}: is too long for a Unix socket (at most {LONGEST_PATH} bytes). Set "
                "STEPSCOPE_LIVE_SOCKET to a shorter path, for workers as well"
            )
        try:
            make_private(self.path.parent)
            found = self.path.parent.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
                raise StepscopeError(
                    f"{self.path.parent}: must be a directory of this user that no one else can write to. Remove it, "
                    "or set STEPSCOPE_LIVE_SOCKET to another place, for workers as well"
                )
            self._lock: IO[bytes] = os.fdopen(os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, FILE_MODE), "r+b")
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                self._lock.close()
                raise StepscopeError(
                    f"{self.path}: another manager or proxy of this user serves this node. Stop it, or choose another "
                    "port (--port, or --proxy-port of the manager)"
                ) from error
            self.path.unlink(missing_ok=True)  # left by a process that was killed
        except OSError as error:
            raise StepscopeError(
                f"{self.path}: cannot be used ({error.strerror or error}). Set STEPSCOPE_LIVE_SOCKET to a path in a "
                "directory of yours, for workers as well"
            ) from error

    def listening(self) -> socket.socket:
        """A socket that listens there, after `claim`.

        Raises:
            StepscopeError: If that is not possible.
        """
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            opened.bind(str(self.path))
            self.path.chmod(FILE_MODE)
            opened.listen(_BACKLOG)
            opened.setblocking(False)
        except OSError as error:
            opened.close()
            raise StepscopeError(f"{self.path}: cannot listen there ({error.strerror or error})") from error
        return opened

    def release(self) -> None:
        """Let others use it."""
        with suppress(OSError):
            self.path.unlink()
        self._lock.close()
