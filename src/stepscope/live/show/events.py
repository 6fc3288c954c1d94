"""Events of a job in a file: one line of JSON each, in files of a bounded size."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.live.show.event_source import deliver
from stepscope.live.show.event_types import AnyEvent, from_json, to_json
from stepscope.live.show.outbox import CannotDeliver, Outbox
from stepscope.live.show.watched import Watched
from stepscope.live.store.files import append
from stepscope.record.files import FILE_MODE, make_private

MOST_BYTES = 10 * 1024 * 1024
"""A file that would become larger is renamed to `FILE.1`, that to `FILE.2`, and so on."""
KEPT = 3
"""Renamed files that are kept."""
MOST_LINE = 1024 * 1024
"""Longer lines are passed over when a file is read."""


class EventFile:
    """Appends lines to a file, and rotates it.

    Args:
        path: The file; its directory is created for this user only.
        most_bytes: Of one file.
        kept: Older files that are kept.

    Raises:
        StepscopeError: If it cannot be written.
    """

    def __init__(self, path: Path, *, most_bytes: int = MOST_BYTES, kept: int = KEPT) -> None:
        self.path = path
        self._most_bytes = most_bytes
        self._kept = kept
        try:
            make_private(path.parent)
            os.close(self._open())
        except OSError as error:
            raise StepscopeError(
                f"{path}: events cannot be written ({error.strerror or error}). Choose another file with --events"
            ) from error

    def write(self, event: AnyEvent) -> None:
        """Append an event, or nothing of it if the disk is full.

        Raises:
            CannotDeliver: If it cannot be written.
        """
        data = to_json(event) + b"\n"
        try:
            if not self._append(data, self._most_bytes):
                self._rotate()
                self._append(data)
        except OSError as error:
            raise CannotDeliver(error.strerror or str(error), again=True) from error

    def _append(self, data: bytes, most_bytes: int | None = None) -> bool:
        """Append a line, unless the file would then be larger than allowed; returns whether it was appended."""
        descriptor = self._open()
        try:
            size = os.fstat(descriptor).st_size
            if most_bytes is not None and size and size + len(data) > most_bytes:
                return False
            append(descriptor, size, data)
        finally:
            os.close(descriptor)
        return True

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(self.path, flags, FILE_MODE)

    def _rotate(self) -> None:
        names = [self.path, *(self.path.with_name(f"{self.path.name}.{n}") for n in range(1, self._kept + 1))]
        for older, newer in zip(reversed(names), reversed(names[:-1]), strict=False):
            if newer.exists():
                newer.replace(older)


def follow(manager: Watched, path: Path, *, most_bytes: int = MOST_BYTES, kept: int = KEPT) -> Callable[[], None]:
    """Write the events of a manager to a file from now on. The event loop never waits for the disk.

    Returns:
        A function that writes what is queued, and ends.

    Raises:
        StepscopeError: If the file cannot be written.
    """
    file = EventFile(path, most_bytes=most_bytes, kept=kept)
    box: Outbox[AnyEvent] = Outbox(f"events in {path}", file.write)
    return deliver(manager, box)


def read(path: Path) -> Iterator[AnyEvent]:
    """The events in a file and its rotated ones, oldest first; other lines are passed over.

    Raises:
        StepscopeError: If the file cannot be read.
    """
    older = sorted(
        (each for each in path.parent.glob(f"{path.name}.*") if each.suffix[1:].isdecimal()),
        key=lambda each: -int(each.suffix[1:]),
    )
    for each in (*older, path):
        try:
            with each.open("rb") as lines:
                while line := lines.readline(MOST_LINE):
                    event = from_json(line)
                    if event is not None:
                        yield event
        except OSError as error:
            raise StepscopeError(f"{each}: cannot be read ({error.strerror or error}). Check the path") from error
