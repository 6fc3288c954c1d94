"""Room below the cap, shared out among the ranks that write, of all jobs and hosts.

Whoever looks through the base directory leaves what it found in a small file there, and each rank may then write its
share of the room that is left without looking again. So the cap holds between looks as well, and looks are rare.
"""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from stepscope.live.store.ageing import age
from stepscope.live.store.contents import contents_of
from stepscope.live.store.files import lock
from stepscope.live.store.pace import Pace
from stepscope.record.files import make_private
from stepscope.recording_format.light import FILE_BYTES

log = logging.getLogger("stepscope")

STATE_FILE = ".stepscope-ageing"
"""In the base directory: what the last look found; its lock lets one rank age at a time."""
_EVERY_S = 45.0
"""A look at least about this often, since others may write below the base directory as well."""
_PATIENCE_S, _WAIT_S = 2.0, 0.02
"""How long a rank that needs room waits for another one that is looking."""
_LEAST_SHARE = 64 << 10
"""Bytes that each rank can write between two looks at the least, if the cap allows."""
_LEAST_FILE = 16 << 10
_STATE_MODE = 0o644


@dataclass(frozen=True)
class _State:
    """What the last look found."""

    begun: int
    """Counts looks that have begun."""
    look: int
    """The look that found this; less than `begun` while another one is going on."""
    total: int
    ranks: int
    at_s: int

    def as_line(self) -> bytes:
        return b"%020d %020d %020d %010d %020d\n" % (self.begun, self.look, self.total, self.ranks, max(self.at_s, 0))

    @classmethod
    def of(cls, line: bytes) -> _State | None:
        parts = line.split()
        if len(parts) != 5 or not all(part.isdigit() for part in parts):
            return None
        begun, look, total, ranks, at_s = map(int, parts)
        return cls(begun, look, total, max(ranks, 1), at_s)


class Room:
    """The room that one rank may fill.

    Args:
        base: Directory of all jobs.
        limit_bytes: Cap of all files in it.
        now_s: Time since the epoch, in seconds.
    """

    def __init__(self, base: Path, limit_bytes: int, now_s: Callable[[], float] = time.time) -> None:
        self.limit_bytes = limit_bytes
        self.file_bytes = FILE_BYTES
        """Start a new file when the present one is larger. Less than 10 MiB where many ranks share a small cap, since
        open files are never deleted."""
        self._base = base
        self._now_s = now_s
        self._look: int | None = None
        self._left = 0
        self._begun = -1
        self._since_begun = 0
        self._complained = False

    def take(self, count: int) -> bool:
        """Whether `count` bytes may be written; they are then counted. Looks, and ages, if the share is used up."""
        self._learn(self._read())
        looked = count <= self._left or self._look_around(count)
        if looked and count > self._left:
            return False
        self._left -= count  # below 0 if another rank has been looking for long; no records are lost for that
        self._since_begun += count
        return True

    def age(self) -> None:
        """Look and age, unless another rank does so at the moment or did lately."""
        self._look_around(None)

    def _learn(self, state: _State | None, *, own: bool = False) -> None:
        """Take a share of the room that the last look found, unless it is known already."""
        if state is None:
            return
        if state.look != self._look:
            self._share(state, own=own)
        if state.begun != self._begun:
            self._begun, self._since_begun = state.begun, 0

    def _share(self, state: _State, *, own: bool) -> None:
        """A share of the room, less what was written since the look began, which it may not have seen. A rank that
        begins to write was not counted by another one's look, so it takes little."""
        most = _LEAST_SHARE if self._look is None and not own else self.limit_bytes
        self._look = state.look
        self.file_bytes = min(FILE_BYTES, max(self.limit_bytes // (4 * state.ranks), _LEAST_FILE))
        unseen = self._since_begun if self._begun == state.look else 0
        self._left = min(self._room(state) * 7 // 8 // state.ranks, most) - unseen

    def _room(self, state: _State) -> int:
        return max(self.limit_bytes - state.total, 0)

    def _look_around(self, need: int | None) -> bool:
        """Look through the base directory, and age. If `need` bytes are needed, this waits for another rank that is
        looking, otherwise it leaves it to that one.

        Returns:
            Whether there was a look, by whomever.
        """
        try:
            with self._locked(_PATIENCE_S if need is not None else 0.0) as descriptor:
                if descriptor is None:
                    return False
                state = _read(descriptor)
                if need is None and state is not None and abs(self._now_s() - state.at_s) < _EVERY_S:
                    return True
                if need is not None and state is not None and state.look != self._look:
                    self._learn(state)
                    if need <= self._left:
                        return True
                state = state or _State(0, 0, 0, 1, 0)
                _write(descriptor, replace(state, begun=max(state.begun, state.look) + 1))
                os.utime(descriptor)
                found = self._aged(need or 0, state, os.fstat(descriptor).st_mtime)
                _write(descriptor, found)
        except OSError as error:
            if not self._complained and error.errno not in (errno.ENOSPC, errno.EDQUOT):
                self._complained = True
                log.warning("live: %s: ranks cannot share its cap: %s", self._base, error.strerror or error)
            found = self._aged(need or 0, _State(0, self._look or 0, 0, 1, 0), self._now_s())
        self._learn(found, own=True)
        if need is not None and self._left < need <= self._room(found):
            self._left = need
        return True

    def _aged(self, need: int, before: _State, disk_s: float) -> _State:
        """What the base directory holds after ageing. `disk_s` is the time on the clock of its disk."""
        pace = Pace()
        contents = contents_of(self._base, pace)
        ranks = max(sum(rank.wrote_lately(disk_s) for rank in contents.ranks), 1)
        reserve = min(self.limit_bytes // 2, ranks * max(need, _LEAST_SHARE))
        total = age(contents, self.limit_bytes - reserve, disk_s, pace)
        look = max(before.begun, before.look) + 1
        return _State(look, look, total, ranks, int(self._now_s()))

    def _read(self) -> _State | None:
        with suppress(OSError):
            descriptor = os.open(self._base / STATE_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                return _read(descriptor)
            finally:
                os.close(descriptor)
        return None

    @contextmanager
    def _locked(self, patience_s: float) -> Iterator[int | None]:
        """The state file, locked; None if another rank keeps it locked. Where the disk has no locks, it is not locked:
        ranks that age at once then delete the same files."""
        make_private(self._base)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(self._base / STATE_FILE, flags, _STATE_MODE)
        try:
            until = time.monotonic() + patience_s
            while not (locked := lock(descriptor)) and time.monotonic() < until:
                time.sleep(_WAIT_S)
            yield descriptor if locked else None
        finally:
            os.close(descriptor)


def _read(descriptor: int) -> _State | None:
    return _State.of(os.pread(descriptor, 128, 0))


def _write(descriptor: int, state: _State) -> None:
    os.pwrite(descriptor, state.as_line(), 0)
