"""The record files of one rank: `<base>/<task>/<rank>/<unix seconds>`."""

from __future__ import annotations

import errno
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from stepscope.live.messages import Group, Hello
from stepscope.live.places import safe_name
from stepscope.live.store.contents import use
from stepscope.live.store.files import append, holds_records, newest_in, open_to_append
from stepscope.live.store.room import Room
from stepscope.record.files import DIRECTORY_MODE, FILE_MODE
from stepscope.recording_format.light import GROUP_FILE, WORKER_FILE

log = logging.getLogger("stepscope")

DEFAULT_LIMIT_MB = 5000
"""Cap of the base directory of all jobs, in MiB; MindCluster's default."""
LIMIT_VARIABLE = "STEPSCOPE_LIVE_LIMIT_MB"
_FIRST_WAIT_S, _LONGEST_WAIT_S = 5.0, 60.0
"""After a failure, writing is tried again after the first, and then ever less often."""
_QUIET_S = 600.0
"""A disk that is full, has a little room, and is full again, is reported again after this time at the earliest."""
_PIECE_BYTES = 1 << 20
"""More is written in pieces of about this size, so that files exceed their size by no more."""


def limit_from_environment() -> int:
    """The cap in MiB: `STEPSCOPE_LIVE_LIMIT_MB`, else the default. A value that is not a number above 0 is reported."""
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not text:
        return DEFAULT_LIMIT_MB
    if text.isascii() and text.isdecimal() and len(text) < 10 and int(text):
        return int(text)
    log.warning("%s=%r is not a number of MiB above 0; the cap is %d MiB", LIMIT_VARIABLE, text[:40], DEFAULT_LIMIT_MB)
    return DEFAULT_LIMIT_MB


class RecordStore:
    """Writes the records of one rank, and ages those of all.

    Nothing here raises on a full disk or a missing directory: records are dropped and counted, the reason is logged
    once, and writing goes on when it succeeds again. Not for several threads at once. Files are opened for each write
    and closed again, so that one that was deleted, or a share that was mounted again, is noticed.

    Args:
        base: Directory of all jobs (`places.base_directory`); created if missing.
        task: Name of the job (`places.task_id`).
        rank: Of this process.
        limit_mb: Cap of all files below `base`, in MiB; see `limit_from_environment`.
        now_s: Time since the epoch, in seconds; names files.
    """

    def __init__(
        self, base: Path, task: str, rank: int, *, limit_mb: int, now_s: Callable[[], float] = time.time
    ) -> None:
        self.directory = base / safe_name(task) / str(rank)
        self.problem = ""
        """Why records are not written at the moment; empty if they are."""
        self.dropped = 0
        """Records (lines) that could not be written."""
        self._base = base
        self._now_s = now_s
        self._room = Room(base, limit_mb << 20, now_s)
        self._newest: str | None = None
        self._claim: int | None = None
        self._wait_s = _FIRST_WAIT_S
        self._retry_at = 0.0
        self._quiet_until = 0.0
        self._unwritten: set[str] = set()

    def write(self, lines: str) -> None:
        """Append whole lines to the newest file, or to a new one if that is larger than 10 MiB.

        They are dropped if they cannot be written; see `problem` and `dropped`.
        """
        pieces = list(_pieces(lines.encode("utf-8", "backslashreplace")))
        if not self.problem or time.monotonic() >= self._retry_at:
            try:
                while pieces:
                    self._append(pieces[0])
                    pieces.pop(0)
                    self._worked()
            except OSError as error:
                self._failed(error)
        self.dropped += sum(piece.count(b"\n") for piece in pieces)

    def write_groups(self, groups: Iterable[Group], rank: int) -> None:
        """Write `parallel_group.json`: the process groups that this rank is in, by key."""
        content = {
            group.key: {
                "group_name": group.name or group.key,
                "group_rank": group.members.index(rank),
                "global_ranks": group.members,
            }
            for group in groups
            if rank in group.members
        }
        self._replace(GROUP_FILE, json.dumps(content).encode())

    def write_worker(self, hello: Hello) -> None:
        """Write `worker.json`: what records do not hold, such as the host and the framework."""
        self._replace(WORKER_FILE, msgspec.json.encode(hello))

    def age(self) -> None:
        """Delete the oldest records of all jobs and ranks if all files below the base exceed the cap. Call it about
        once a minute; writing does it as well when room is needed."""
        with suppress(OSError):
            self._room.age()

    def close(self) -> None:
        """Nothing is written any more: the newest file may be deleted like others."""
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None

    def _append(self, data: bytes) -> None:
        if not self._room.take(len(data)):
            os.close(self._open()[0])  # if it begins a new file, the one before may be deleted
            if not self._room.take(len(data)):
                problem = f"the cap of {self._room.limit_bytes >> 20} MiB is reached and no old records can be deleted"
                raise OSError(errno.EDQUOT, problem, str(self._base))
        descriptor, size = self._open()
        try:
            append(descriptor, size, data)
        finally:
            os.close(descriptor)

    def _open(self) -> tuple[int, int]:
        """The newest file, or a new one, to append to; its descriptor and size."""
        if self._newest is None:
            self._make_directory()
            newest = newest_in(self.directory)
            self._newest = newest if newest and holds_records(self.directory / newest) else None
        opened = None
        if self._newest is not None:
            try:
                opened = open_to_append(self.directory / self._newest, new=False)
            except FileNotFoundError:
                self._make_directory()
        if opened is not None:
            if opened[1] <= self._room.file_bytes:
                return opened
            os.close(opened[0])
        return self._new()

    def _new(self) -> tuple[int, int]:
        """A new file, whose name sorts after those of all others of this rank, whatever the clock says."""
        newest = newest_in(self.directory)
        number = max(int(self._now_s()), 0 if newest is None else int(newest) + 1)
        while True:
            opened = open_to_append(self.directory / str(number), new=True)
            if opened is not None:
                self._newest = str(number)
                return opened
            number += 1

    def _make_directory(self) -> None:
        """Create the directory of this rank. Neither it nor that of the job may be a symbolic link."""
        self._base.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        for directory in (self.directory.parent, self.directory):
            if directory.is_symlink():
                raise OSError(errno.ELOOP, "is a symbolic link", str(directory))
            directory.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        self.close()
        self._claim = use(self.directory)

    def _replace(self, name: str, content: bytes) -> None:
        """Write a small file atomically; a failure is logged once."""
        draft = self.directory / f".{name}.{os.getpid()}"
        try:
            self._make_directory()
            draft.unlink(missing_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(draft, flags, FILE_MODE), "wb") as file:
                file.write(content)
            draft.replace(self.directory / name)
            self._unwritten.discard(name)
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            if name not in self._unwritten and not self.problem:
                self._unwritten.add(name)
                log.warning("live: %s cannot be written: %s", self.directory / name, error.strerror or error)

    def _failed(self, error: OSError) -> None:
        self._newest = None
        self._wait_s = min(2 * self._wait_s, _LONGEST_WAIT_S) if self.problem else _FIRST_WAIT_S
        self._retry_at = time.monotonic() + self._wait_s
        reason = error.strerror or str(error)
        if not self.problem and time.monotonic() >= self._quiet_until:
            self._quiet_until = time.monotonic() + _QUIET_S
            log.warning("live: %s: no records are written: %s. Training continues", self.directory, reason)
        self.problem = f"{self.directory}: {reason}"

    def _worked(self) -> None:
        if self.problem:
            self.problem = ""
            log.info("live: %s: records are written again; %d were dropped", self.directory, self.dropped)


def _pieces(data: bytes) -> Iterator[bytes]:
    """Whole lines, in pieces of about 1 MiB."""
    start = 0
    while start < len(data):
        end = len(data)
        if end - start > _PIECE_BYTES:
            end = data.find(b"\n", start + _PIECE_BYTES) + 1 or end
        yield data[start:end]
        start = end
