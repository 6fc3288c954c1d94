"""Identity and host of a process, as far as they were ever known, and the recorder's own threads in it."""

from __future__ import annotations

import os
import platform
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepscope._version import __version__
from stepscope.record.backend import Backend
from stepscope.record.environment import kept_arguments, kept_environment, stated_identity

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_own_threads: set[int] = set()
"""Native ids of the recorder's threads so far; listed in the recording, since Python code on them is not the user's."""


class ProcessFacts:
    """Facts from the backend, updated by `look`. Values stay known after the process group is destroyed."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._stated = stated_identity()
        self._found: dict[str, Any] = {}
        self._process = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "boot_id": boot_id(),
            "stepscope_version": __version__,
            "python_version": platform.python_version(),
            "environment": kept_environment(),
            "arguments": kept_arguments(),
        }

    def look(self) -> None:
        """Query the backend again."""
        self._stated = stated_identity(quiet=True)
        for name, value in {**vars(self._backend.identity()), **vars(self._backend.surroundings())}.items():
            if value not in (None, [], {}) or name not in self._found:
                self._found[name] = value

    @property
    def rank(self) -> int:
        """Its rank; 0 if unknown."""
        return self._known("rank") or 0

    def known(self) -> dict[str, Any]:
        """The fields of `About` about process, host and job."""
        identity = {name: self._known(name) for name in vars(self._stated)}
        identity["rank"] = self.rank
        identity["world_size"] = identity["world_size"] or 1
        return {**self._found, **identity, **self._process, "own_threads": sorted(_own_threads)}

    def _known(self, name: str) -> int | None:
        found: int | None = self._found.get(name)
        stated: int | None = getattr(self._stated, name)
        return stated if found is None else found


def boot_id() -> str | None:
    """Id of the machine since its last boot; processes with the same id share their clocks."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return None


def own_thread(target: Callable[..., object], name: str, *args: Any) -> threading.Thread:
    """A daemon thread of the recorder, not started yet."""

    def run() -> None:
        _own_threads.add(threading.get_native_id())
        target(*args)

    return threading.Thread(target=run, name=name, daemon=True)
