"""The mounted file with the switches of a job, as MindCluster writes it: noticed when its content changes.

Used by the manager, and by a worker that reaches no proxy, so it starts no thread and loads nothing heavy: a look costs
4 microseconds, and 50 if there is something new. The file is read at each look instead of comparing times and sizes
first: its times may be as coarse as two seconds, network file systems serve them from a cache but look anew when a file
is opened, and the content is short.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

from stepscope.live.kinds import Kind
from stepscope.live.switches import MOST_BYTES, InvalidSwitch, parse_guide

log = logging.getLogger("stepscope")

KEY = "profilingSwitch"
"""Name of the file, and the key of the ConfigMap that it comes from."""
LOOK_EVERY_S = 0.5
"""How often to look, so that a change is seen within a second."""
SETTLED_S = 0.4
"""A file that cannot be read is not reported before this time: its writer may be half way."""
QUIET_S = 30.0
"""The same problem is reported again after this time at the earliest; MindCluster's worker does the same."""
MOST_PROBLEMS = 20
"""How many problems are remembered, so as not to report them too often."""
_MISSING = "there is no such file"


class MountedSwitches:
    """Follows one file. Whatever is wrong with it, the last state stays in force.

    Args:
        path: The file, or the directory in which `profilingSwitch` lies: a ConfigMap volume, whose files Kubernetes
            replaces by exchanging a symbolic link.
        now_s: A clock that never goes back, in seconds.
    """

    def __init__(self, path: Path, *, now_s: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self.problem = ""
        """Why the file has no effect at the moment; empty if it has."""
        self._now_s = now_s
        self._content: bytes | None = None  # the last valid one
        self._declared: dict[Kind, bool] | None = None
        self._refused: tuple[bytes | None, str] = None, ""  # the last content that was not valid, and why
        self._doubtful_since_s: float | None = None
        self._reported_s: dict[str, float] = {}

    def look(self) -> dict[Kind, bool] | None:
        """What the file says, if that has changed since it was last valid, or at the first look; else None.

        Content that only looks different, e.g. by spaces or the order of keys, has not changed. Never raises.
        """
        try:
            content = _read(self.path)
            declared = self._declared if content == self._content else self._parsed(content)
        except (InvalidSwitch, OSError) as error:
            self._doubt(_words(error))
            return None
        self._doubtful_since_s = None
        if self.problem:
            self.problem = ""
            log.info("%s: the switches can be read again", self.path)
        self._content = content
        if declared == self._declared:
            return None
        self._declared = declared
        return dict(declared or {})

    def _parsed(self, content: bytes) -> dict[Kind, bool]:
        """Changes from content; what was refused at the last look is not parsed again, as training would notice."""
        refused, problem = self._refused
        if content == refused:
            raise InvalidSwitch(problem)
        try:
            return parse_guide(content)
        except InvalidSwitch as error:
            self._refused = content, str(error)
            raise

    def _doubt(self, problem: str) -> None:
        """Report a problem if it has lasted longer than a writer needs."""
        now_s = self._now_s()
        if self._doubtful_since_s is None:
            self._doubtful_since_s = now_s
        if now_s - self._doubtful_since_s < SETTLED_S or problem == self.problem:
            return
        self.problem = problem
        last_s = self._reported_s.pop(problem, None)
        if last_s is None or now_s - last_s >= QUIET_S:
            # nobody may ever have made the file, which is no fault, least of all in each of a thousand ranks
            level = logging.INFO if problem == _MISSING and self._content is None else logging.WARNING
            log.log(level, "%s: %s. The switches stay as they are", self.path, problem)
            last_s = now_s
        self._reported_s[problem] = last_s
        while len(self._reported_s) > MOST_PROBLEMS:
            del self._reported_s[next(iter(self._reported_s))]


def _words(error: InvalidSwitch | OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return _MISSING
    return str(error) if isinstance(error, InvalidSwitch) else error.strerror or str(error)


def _read(path: Path) -> bytes:
    """The content of the file, of which at most one byte too much is read.

    Raises:
        InvalidSwitch: If it is too long, or no file.
        OSError: If it cannot be read.
    """
    # a pipe without a writer would block without O_NONBLOCK
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode) and path.name != KEY:
            return _read(path / KEY)
        if not stat.S_ISREG(found.st_mode):
            raise InvalidSwitch("is not a file")
        if found.st_size > MOST_BYTES:
            raise InvalidSwitch(f"has {found.st_size:,} bytes; at most {MOST_BYTES:,} are read")
        return os.read(descriptor, MOST_BYTES + 1)
    finally:
        os.close(descriptor)
